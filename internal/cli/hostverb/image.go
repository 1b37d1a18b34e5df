package hostverb

import (
	"cmp"
	"fmt"

	"github.com/spf13/cobra"

	"orrery/internal/cli/table"
	"orrery/internal/cli/verb"
	"orrery/internal/control/layers"
	"orrery/internal/text/humanize"
)

// Image returns the verb for layers.
func Image(call *verb.Call) *cobra.Command {
	return verb.Group("image", "Manage the base images and role layers on this host", imageBuild(call), imageList(call),
		imageGC(call), imageVerify(call))
}

// hostsFlag adds a flag that selects hosts of the site.
func hostsFlag(c *cobra.Command, names *[]string) {
	c.Flags().StringSliceVar(names, "host", nil,
		"use the store of this `host`, or \"all\" (default: this host)")
}

func imageList(call *verb.Call) *cobra.Command {
	var names []string
	c := &cobra.Command{
		Use:     "ls",
		Short:   "List the layers",
		Example: "  orrery image ls",
		Args:    cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			all, err := layers.List(c.Context(), call.Session, names...)
			if err != nil && len(all) == 0 {
				return err
			}
			heading := "DIGEST\tSIZE\tBUILT\tUSED\tWHAT"
			if len(names) > 0 {
				heading = "HOST\t" + heading
			}
			return cmp.Or(err, table.List(call.Out, all, heading, func(l layers.Row) []any {
				used := "no"
				if l.Used {
					used = "yes"
				}
				cells := []any{l.Digest, fmt.Sprintf("%d MiB", l.Size>>20), table.Minute(l.Built), used, l.Title}
				if len(names) > 0 {
					cells = append([]any{l.Host}, cells...)
				}
				return cells
			}))
		},
	}
	hostsFlag(c, &names)
	c.Flags().Bool("json", false, "print JSON, with the versions of all packages")
	return c
}

func imageGC(call *verb.Call) *cobra.Command {
	var names []string
	c := &cobra.Command{
		Use:     "gc",
		Short:   "Remove layers that no node uses",
		Example: "  orrery image gc",
		Args:    cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			gone, err := layers.Remove(c.Context(), call.Session, names...)
			if err != nil && len(gone) == 0 {
				return err
			}
			var size int64
			for _, i := range gone {
				size += i.Size
				fmt.Fprintf(call.Out, "%sremoved %s  %s\n", at(i.Host), i.Digest, i.Title)
			}
			fmt.Fprintf(call.Out, "%s removed, %d MiB freed.\n", humanize.Plural(len(gone), "layer"), size>>20)
			return err
		},
	}
	hostsFlag(c, &names)
	return c
}

// at returns the beginning of a line about a host.
func at(host string) string {
	if host == "" {
		return ""
	}
	return host + ": "
}

func imageVerify(call *verb.Call) *cobra.Command {
	var names []string
	c := &cobra.Command{
		Use:     "verify [DIGEST...]",
		Short:   "Check that layers are unchanged since they were built",
		Example: "  orrery image verify",
		RunE: func(c *cobra.Command, args []string) error {
			var wrong error
			err := layers.Verify(c.Context(), call.Session, names, args, func(host, digest string, err error) {
				if err != nil {
					verb.PrintError(call.Err, err)
					wrong = cmp.Or(wrong, err)
					return
				}
				fmt.Fprintf(call.Out, "%s%s  as built\n", at(host), digest)
			})
			if err != nil {
				return err
			}
			return verb.OnlyExitStatus(wrong)
		},
	}
	hostsFlag(c, &names)
	return c
}

func imageBuild(call *verb.Call) *cobra.Command {
	c := &cobra.Command{
		Use:     "build [SELECTOR...]",
		Short:   "Build the layers that nodes need, and print their digests",
		Example: "  orrery image build role=portal",
		RunE: func(c *cobra.Command, args []string) error {
			all, err := layers.Build(c.Context(), call.Session, args)
			if err != nil {
				return err
			}
			for _, l := range all {
				fmt.Fprintf(call.Out, "%s  %s\n", l.Digest, l.Title)
			}
			return nil
		},
	}
	call.WithoutFlag(c)
	return c
}
