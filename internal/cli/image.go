package cli

import (
	"cmp"
	"fmt"

	"github.com/spf13/cobra"

	"orrery/internal/control/layers"
	"orrery/internal/phrase"
)

func (a *app) imageVerb() *cobra.Command {
	return group("image", "Manage the base images and role layers on this host", a.imageBuild(), a.imageList(), a.imageGC(), a.imageVerify())
}

func (a *app) imageList() *cobra.Command {
	return withJSON(&cobra.Command{
		Use:   "ls",
		Short: "List the layers",
		Args:  cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			all, err := layers.List(c.Context(), &a.Session)
			if err != nil {
				return err
			}
			return list(a, all, "DIGEST\tSIZE\tBUILT\tUSED\tWHAT", func(l layers.Row) []any {
				used := "no"
				if l.Used {
					used = "yes"
				}
				return []any{l.Digest, fmt.Sprintf("%d MiB", l.Size>>20), minute(l.Built), used, l.Title}
			})
		},
	}, "print JSON, with the versions of all packages")
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
	c := &cobra.Command{
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
	a.withoutFlag(c)
	return c
}

func (a *app) mirrorVerb() *cobra.Command {
	return group("mirror", "Mirror the packages that the site needs, to build without the internet", a.mirrorPull())
}

func (a *app) mirrorPull() *cobra.Command {
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
			done, err := layers.Pull(c.Context(), &a.Session, o)
			if err != nil {
				return err
			}
			a.tellPulled(done)
			return nil
		},
	}
	c.Flags().BoolVar(&o.Prune, "prune", false, "remove what no layer of this site needs")
	return c
}

func (a *app) tellPulled(p *layers.Pulled) {
	if p.Needless {
		fmt.Fprintf(a.out, "%s has no nodes, so it needs no packages.\n", p.Site)
		return
	}
	all := phrase.Count(p.Debian, "Debian package") + " and " + phrase.Count(p.Python, "Python package")
	if p.New() {
		fmt.Fprintf(a.out, "%s: %s; %d were fetched and %d copied from this host's cache, %d MiB.\n", p.Dir, all, p.Fetched, p.Cached, p.Bytes>>20)
	} else {
		fmt.Fprintf(a.out, "%s: nothing to fetch: %s are there.\n", p.Dir, all)
	}
	if p.Removed > 0 {
		fmt.Fprintf(a.out, "%s that no layer needs removed.\n", phrase.Count(p.Removed, "file"))
	}
	if p.Apt != "" {
		fmt.Fprintf(a.out, "To build from it, add to site.toml:\n\n[mirror]\napt  = %q\npypi = %q\n", p.Apt, p.PyPI)
	}
}
