package cli

import (
	"fmt"

	"github.com/spf13/cobra"

	"orrery/internal/control/layers"
	"orrery/internal/phrase"
)

func (a *app) mirrorVerb() *cobra.Command {
	c := &cobra.Command{
		Use: "mirror", Short: "Mirror the packages that the site needs, to build without the internet",
		Args: someVerb, RunE: func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(a.mirrorPull())
	return c
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
		fmt.Fprintf(a.out, "To build from it, say in site.toml:\n\n[mirror]\napt  = %q\npypi = %q\n", p.Apt, p.PyPI)
	}
}
