// Package imageverb has the verbs for layers and for the mirror of their packages.
package imageverb

import (
	"cmp"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"orrery/internal/cli/reply"
	"orrery/internal/cli/table"
	"orrery/internal/control"
	"orrery/internal/control/layers"
	"orrery/internal/phrase"
	"orrery/internal/problem"
)

// A Face is what verbs share: on whose behalf they act, and where they print.
type Face struct {
	Session  *control.Session
	Out, Err io.Writer
	Tell     func(error)                                                     // prints a problem
	Without  func(*cobra.Command)                                            // the flag that leaves hosts out
	Group    func(use, short string, verbs ...*cobra.Command) *cobra.Command // a verb that has only others below it
}

// Image returns the verb for layers.
func (a Face) Image() *cobra.Command {
	return a.Group("image", "Manage the base images and role layers on this host", a.build(), a.list(), a.gc(), a.verify())
}

// hostsFlag lets a verb be about hosts of the site.
func hostsFlag(c *cobra.Command, names *[]string) {
	c.Flags().StringSliceVar(names, "host", nil, "the store of this `host` of the site, or of \"all\" hosts (default: that of this machine)")
}

func (a Face) list() *cobra.Command {
	var names []string
	c := &cobra.Command{
		Use:   "ls",
		Short: "List the layers",
		Args:  cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			all, err := layers.List(c.Context(), a.Session, names...)
			if err != nil && len(all) == 0 {
				return err
			}
			if reply.Wanted(a.Out) {
				return cmp.Or(err, reply.JSON(a.Out, all))
			}
			heading := "DIGEST\tSIZE\tBUILT\tUSED\tWHAT"
			if len(names) > 0 {
				heading = "HOST\t" + heading
			}
			bad := table.Print(a.Out, heading, all, func(l layers.Row) []any {
				used := "no"
				if l.Used {
					used = "yes"
				}
				cells := []any{l.Digest, fmt.Sprintf("%d MiB", l.Size>>20), table.Minute(l.Built), used, l.Title}
				if len(names) > 0 {
					cells = append([]any{l.Host}, cells...)
				}
				return cells
			})
			return cmp.Or(err, bad)
		},
	}
	hostsFlag(c, &names)
	c.Flags().Bool("json", false, "print JSON, with the versions of all packages")
	return c
}

func (a Face) gc() *cobra.Command {
	var names []string
	c := &cobra.Command{
		Use:   "gc",
		Short: "Remove layers that no node uses",
		Args:  cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			gone, err := layers.Remove(c.Context(), a.Session, names...)
			if err != nil && len(gone) == 0 {
				return err
			}
			var size int64
			for _, i := range gone {
				size += i.Size
				fmt.Fprintf(a.Out, "%sremoved %s  %s\n", at(i.Host), i.Digest, i.Title)
			}
			fmt.Fprintf(a.Out, "%s removed, %d MiB freed.\n", phrase.Count(len(gone), "layer"), size>>20)
			return err
		},
	}
	hostsFlag(c, &names)
	return c
}

// at begins a line about a host.
func at(host string) string {
	if host == "" {
		return ""
	}
	return host + ": "
}

func (a Face) verify() *cobra.Command {
	var names []string
	c := &cobra.Command{
		Use:   "verify [DIGEST...]",
		Short: "Check that layers are as they were built",
		RunE: func(c *cobra.Command, args []string) error {
			var wrong error
			err := layers.Verify(c.Context(), a.Session, names, args, func(host, digest string, err error) {
				if err != nil {
					a.Tell(err)
					wrong = cmp.Or(wrong, err)
					return
				}
				fmt.Fprintf(a.Out, "%s%s  as built\n", at(host), digest)
			})
			if err != nil || wrong == nil {
				return err
			}
			return problem.Status(problem.Exit(wrong))
		},
	}
	hostsFlag(c, &names)
	return c
}

func (a Face) build() *cobra.Command {
	c := &cobra.Command{
		Use:   "build [SELECTOR...]",
		Short: "Build the layers that nodes need before you run up, and print their digests",
		RunE: func(c *cobra.Command, args []string) error {
			all, err := layers.Build(c.Context(), a.Session, args)
			if err != nil {
				return err
			}
			for _, l := range all {
				fmt.Fprintf(a.Out, "%s  %s\n", l.Digest, l.Title)
			}
			return nil
		},
	}
	a.Without(c)
	return c
}

// Mirror returns the verb for packages.
func (a Face) Mirror() *cobra.Command {
	return a.Group("mirror", "Mirror the packages that the site needs, to build without the internet", a.pull())
}

func (a Face) pull() *cobra.Command {
	var o layers.PullOptions
	c := &cobra.Command{
		Use:   "pull [DIRECTORY]",
		Short: "Download the exact packages of all layers that the site and its releases need",
		Long: `Downloads the Debian and Python packages in the layers of the site, its releases and its twins, in exactly these versions, into an archive for apt
and an index for pip. Missing layers are built first. Packages that are already there and intact are not downloaded again. [mirror] in
site.toml can then point at the directory.`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			if len(args) == 1 {
				o.Dir = args[0]
			}
			done, err := layers.Pull(c.Context(), a.Session, o)
			if err != nil {
				return err
			}
			a.printPulled(done)
			return nil
		},
	}
	c.Flags().BoolVar(&o.Prune, "prune", false, "remove what no layer of this site needs")
	return c
}

func (a Face) printPulled(p *layers.Pulled) {
	if p.Needless {
		fmt.Fprintf(a.Out, "%s has no nodes, so it needs no packages.\n", p.Site)
		return
	}
	all := phrase.Count(p.Debian, "Debian package") + " and " + phrase.Count(p.Python, "Python package")
	if p.New() {
		fmt.Fprintf(a.Out, "%s: %s; %d were fetched and %d copied from this host's cache, %d MiB.\n", p.Dir, all, p.Fetched, p.Cached, p.Bytes>>20)
	} else {
		fmt.Fprintf(a.Out, "%s: nothing to fetch: %s are there.\n", p.Dir, all)
	}
	if p.Removed > 0 {
		fmt.Fprintf(a.Out, "%s that no layer needs removed.\n", phrase.Count(p.Removed, "file"))
	}
	if p.Apt != "" {
		fmt.Fprintf(a.Out, "To build from it, add to site.toml:\n\n[mirror]\napt  = %q\npypi = %q\n", p.Apt, p.PyPI)
	}
}
