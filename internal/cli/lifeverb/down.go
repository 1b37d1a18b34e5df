package lifeverb

import (
	"context"
	"fmt"
	"io"
	"slices"

	"github.com/spf13/cobra"

	"orrery/internal/apply"
	"orrery/internal/cli/value"
	"orrery/internal/cli/verb"
	"orrery/internal/control"
	"orrery/internal/control/sites"
	"orrery/internal/plan"
	"orrery/internal/problem"
	"orrery/internal/site"
	"orrery/internal/text/humanize"
)

// Down returns the command `orrery down`.
func Down(call *verb.Call) *cobra.Command {
	var volumes bool
	var name string
	c := &cobra.Command{
		Use:   "down [SELECTOR...]",
		Short: "Take down nodes or, without a selector, the whole site",
		Example: `  orrery down
  orrery down 'receptor*'`,
		Long: `Destroys nodes and what they wrote outside volumes. Without a selector, it also
removes the site's networks, firewall rules and kernel settings. Volumes, SSH
host keys, the journal and layers in the store are kept; --volumes deletes the
volumes permanently.

With --name you need no site directory: the host knows what belongs to the
site. "orrery ls" lists the sites.`,
		RunE: func(c *cobra.Command, args []string) error {
			if name != "" {
				return downNamed(c.Context(), call.Session, call.Out, name, args, volumes)
			}
			return call.WithSite(func(ctx context.Context, s *site.Site, selectors []string) error {
				result, err := sites.Down(ctx, call.Session, s, selectors, volumes)
				return printDown(call.Out, s.Key(), result, err)
			})(c, args)
		},
	}
	call.WithoutFlag(c)
	call.ProductionFlag(c)
	c.Flags().StringVar(&name, "name", "", "take down the `site` of this name, without its directory")
	c.Flags().BoolVar(&volumes, "volumes", false, "also delete volumes permanently, after asking")
	call.YesFlag(c)
	call.AgreeFlag(c, control.Volumes, "the site's `name`, to delete its data without asking")
	return value.EndingFlags(c, &call.Session.Ending)
}

// downNamed takes down a site that is known to this host, without its directory.
func downNamed(ctx context.Context, session *control.Session, out io.Writer, name string, selectors []string,
	volumes bool) error {
	if len(selectors) > 0 || session.SiteDir != "" {
		return problem.New(problem.Usage, "--name takes down a whole site: selectors and -C do not apply").
			Try("leave out selectors and -C, or leave out --name")
	}
	result, err := sites.DownNamed(ctx, session, name, volumes)
	return printDown(out, name, result, err)
}

func printDown(out io.Writer, name string, r *apply.Result, err error) error {
	switch {
	case err != nil:
		return err
	case r == nil:
		fmt.Fprintf(out, "%s: nothing to take down.\n", name)
	default:
		fmt.Fprintf(out, "%s: %s taken down.%s\n", name, humanize.Plural(countDone(r.Done, plan.DestroyNode), "node"),
			volumesKept(countDone(r.Done, plan.RemoveVolume)))
	}
	return nil
}

// countDone counts the steps of a kind.
func countDone(steps []*plan.Step, kind plan.Kind) int {
	return len(slices.DeleteFunc(slices.Clone(steps), func(s *plan.Step) bool { return s.Kind != kind }))
}

func volumesKept(removed int) string {
	if removed > 0 {
		return fmt.Sprintf(" %s deleted permanently. Layers, host keys and the journal are kept.",
			humanize.Plural(removed, "volume"))
	}
	return " Volumes, layers, host keys and the journal are kept."
}
