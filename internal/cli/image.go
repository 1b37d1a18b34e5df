package cli

import (
	"cmp"
	"fmt"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"orrery/internal/cli/reply"
	"orrery/internal/control/layers"
)

func (a *app) imageVerb() *cobra.Command {
	c := &cobra.Command{
		Use: "image", Short: "Manage the base images and role layers on this host",
		Args: someVerb, RunE: func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(a.imageBuild(), a.imageList(), a.imageGC(), a.imageVerify())
	return c
}

func (a *app) imageList() *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use:   "ls",
		Short: "List the layers",
		Args:  cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			rows, err := layers.List(c.Context(), &a.Session)
			if err != nil {
				return err
			}
			if asJSON {
				return reply.JSON(a.out, rows)
			}
			t := tabwriter.NewWriter(a.out, 0, 0, 2, ' ', 0)
			fmt.Fprintln(t, "DIGEST\tSIZE\tBUILT\tUSED\tWHAT")
			for _, i := range rows {
				inUse := "no"
				if i.Used {
					inUse = "yes"
				}
				fmt.Fprintf(t, "%s\t%d MiB\t%s\t%s\t%s\n", i.Digest, i.Size>>20, i.Built.Local().Format("2006-01-02 15:04"), inUse, i.Title)
			}
			return t.Flush()
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON, with the versions of all packages")
	return c
}

func (a *app) imageGC() *cobra.Command {
	return &cobra.Command{
		Use:   "gc",
		Short: "Remove layers that no node uses",
		Args:  cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			gone, err := layers.Remove(c.Context(), &a.Session)
			if err != nil && len(gone) == 0 {
				return err
			}
			var size int64
			for _, i := range gone {
				size += i.Size
				fmt.Fprintf(a.out, "removed %s  %s\n", i.Digest, i.Title)
			}
			fmt.Fprintf(a.out, "%d layers removed, %d MiB freed.\n", len(gone), size>>20)
			return err
		},
	}
}

func (a *app) imageVerify() *cobra.Command {
	return &cobra.Command{
		Use:   "verify [DIGEST...]",
		Short: "Check that layers are as they were built",
		RunE: func(c *cobra.Command, args []string) error {
			var wrong error
			err := layers.Verify(c.Context(), &a.Session, args, func(digest string, err error) {
				if err != nil {
					printError(a.err, err)
					wrong = cmp.Or(wrong, err)
					return
				}
				fmt.Fprintf(a.out, "%s  as built\n", digest)
			})
			if err != nil {
				return err
			}
			return said(wrong)
		},
	}
}

func (a *app) imageBuild() *cobra.Command {
	return &cobra.Command{
		Use:   "build [SELECTOR...]",
		Short: "Build the layers that nodes need before you run up, and print their digests",
		RunE: func(c *cobra.Command, args []string) error {
			all, err := layers.Build(c.Context(), &a.Session, args)
			if err != nil {
				return err
			}
			for _, l := range all {
				fmt.Fprintf(a.out, "%s  %s\n", l.Digest, l.Title)
			}
			return nil
		},
	}
}
