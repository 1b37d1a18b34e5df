package releaseverb

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"orrery/internal/cli/verb"
	"orrery/internal/control/register"
	"orrery/internal/control/releases"
	"orrery/internal/site"
	"orrery/internal/text/sanitize"
)

func releaseTrust(call *verb.Call) *cobra.Command {
	var o releases.TrustOptions
	c := &cobra.Command{
		Use: "trust NUMBER", Short: "Accept the copy of a release on the hosts", Args: cobra.ExactArgs(1),
		Long: `Hosts keep the copy of the site directory from which a release was staged, and
Orrery uses that copy only if releases.lock has its digest. "orrery stage"
writes the digest. This command shows how the copy differs from the site
directory, asks you, and writes its digest: for releases that were staged by an
Orrery without releases.lock, or whose line is lost. The author of the copy
becomes root on the hosts of its nodes.`,
		Example: "  orrery release trust 701 --into review\n  orrery release trust 701",
		RunE: call.WithSite(func(ctx context.Context, s *site.Site, args []string) (err error) {
			if o.Release, err = register.ReleaseNumber(s, args[0]); err != nil {
				return err
			}
			o.Show = func(kept *releases.Copy) { showCopy(call.Out, kept) }
			kept, err := releases.Trust(ctx, call.Session, s, o)
			if err != nil {
				return err
			}
			switch {
			case o.Into != "":
				fmt.Fprintf(call.Out, "%s has the copy that %s of release %d.\nTo accept it: orrery release trust %[3]d --digest %s\n",
					o.Into, hostsWithCopy(kept), kept.Release, kept.Digest)
			case kept.Locked == kept.Digest:
				fmt.Fprintf(call.Out, "releases.lock already has the digest of release %d.\n", kept.Release)
			}
			return nil
		}),
	}
	c.Flags().StringVar(&o.Host, "host", "", "use the copy of this host, if the hosts' copies differ")
	c.Flags().StringVar(&o.Into, "into", "", "store the copy in this new directory, and accept nothing")
	c.Flags().StringVar(&o.Digest, "digest", "", "accept the copy with this digest without being asked")
	return c
}

// hostsWithCopy returns the phrase that says which hosts have a copy.
func hostsWithCopy(c *releases.Copy) string {
	if len(c.Hosts) == 1 {
		return "host " + c.Hosts[0] + " keeps"
	}
	return "hosts " + strings.Join(c.Hosts, " and ") + " keep"
}

// showCopy prints how the hosts' copy of a release differs from the site directory.
func showCopy(out io.Writer, c *releases.Copy) {
	fmt.Fprintf(out, "The copy that %s of release %d has the digest %s.\n", hostsWithCopy(c), c.Release, c.Digest)
	if len(c.Files) == 0 {
		fmt.Fprintln(out, "It is the same as the site directory.")
		return
	}
	fmt.Fprintln(out, "Differences (-: only in the site directory, +: only in the copy):")
	for _, f := range c.Files {
		fmt.Fprintf(out, "\n%s\n", sanitize.Line(f.Path))
		if f.Lines == nil {
			fmt.Fprintln(out, "  differs (not text)")
		}
		for _, line := range f.Lines {
			fmt.Fprintf(out, "  %s\n", sanitize.Line(line))
		}
	}
	fmt.Fprintln(out)
}
