package hostverb

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"orrery/internal/cli/verb"
	"orrery/internal/control/layers"
	"orrery/internal/text/humanize"
)

// Mirror returns the verb for packages.
func Mirror(call *verb.Call) *cobra.Command {
	return verb.Group("mirror", "Mirror the site's packages, to build without the internet", mirrorPull(call))
}

func mirrorPull(call *verb.Call) *cobra.Command {
	var o layers.PullOptions
	c := &cobra.Command{
		Use:   "pull [DIRECTORY]",
		Short: "Download the packages in the layers of the site and its releases",
		Example: `  orrery mirror pull
  orrery mirror pull /srv/mirror`,
		Long: `Downloads the Debian and Python packages in the layers of the site, its
releases and its twins, in exactly these versions, into an archive for apt and
an index for pip. Missing layers are built first. Packages that are already in
the directory and intact are not downloaded again. [mirror] in site.toml can
then point at the directory.`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			if len(args) == 1 {
				o.Dir = args[0]
			}
			done, err := layers.Pull(c.Context(), call.Session, o)
			if err != nil {
				return err
			}
			printPulled(call.Out, done)
			return nil
		},
	}
	c.Flags().BoolVar(&o.Prune, "prune", false, "remove packages that no layer of this site needs")
	return c
}

func printPulled(out io.Writer, p *layers.Pulled) {
	if p.Needless {
		fmt.Fprintf(out, "%s has no nodes, so it needs no packages.\n", p.Site)
		return
	}
	all := humanize.Plural(p.Debian, "Debian package") + " and " + humanize.Plural(p.Python, "Python package")
	if p.Changed() {
		fmt.Fprintf(out, "%s: %s; %d were fetched and %d copied from this host's cache, %d MiB.\n", p.Dir, all, p.Fetched,
			p.Cached, p.Bytes>>20)
	} else {
		fmt.Fprintf(out, "%s: nothing to fetch: %s exist.\n", p.Dir, all)
	}
	if p.Removed > 0 {
		fmt.Fprintf(out, "%s that no layer needs removed.\n", humanize.Plural(p.Removed, "file"))
	}
	if p.Apt != "" {
		fmt.Fprintf(out, "To build from it, add to site.toml:\n\n[mirror]\napt  = %q\npypi = %q\n", p.Apt, p.PyPI)
	}
}
