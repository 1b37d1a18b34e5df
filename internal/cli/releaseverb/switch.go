package releaseverb

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"orrery/internal/cli/verb"
	"orrery/internal/control/register"
	"orrery/internal/control/releases"
	"orrery/internal/problem"
	"orrery/internal/site"
	"orrery/internal/text/humanize"
)

// Switch returns the command `orrery switch`.
func Switch(call *verb.Call) *cobra.Command {
	var text, by string
	var within time.Duration
	var wait bool
	c := &cobra.Command{
		Use:   "switch [SELECTOR...] --release NUMBER",
		Short: "Make a staged release live, on all nodes or on none",
		Long: `Makes a release live for a set of nodes. First, all of them are checked in
quarantine once more. Then, in one batch, the new nodes move onto the live
networks and the old ones into quarantine; exclusive volumes move to the new
nodes, and what only live nodes may do is done. Health is checked again. If
anything fails, everything is undone. The former release is kept: "orrery
rollback" returns to it.

With --confirm-within, the release is on trial for that time once it is live.
The nodes return to the former release unless you run "orrery confirm" or the
health checks pass for the whole time (with --confirm-by hand: unless you run
"orrery confirm"), and at once if a check fails for good.

The exit status is 0 if the release is live and confirmed, 12 if it is on
trial, 13 if the nodes are back at the former release, and 14 if they are not
all at one release.`,
		Example: "  orrery switch system --release 701 --confirm-within 10m",
		RunE: call.WithSite(func(ctx context.Context, s *site.Site, selectors []string) error {
			number, err := register.ReleaseNumber(s, text)
			if err != nil {
				return err
			}
			byHand, known := map[string]bool{"checks": false, "hand": true}[by]
			if !known {
				return problem.New(problem.Usage, "--confirm-by %q: unknown value", by).Try("use checks or hand")
			}
			made, err := releases.Switch(ctx, call.Session, s, selectors,
				releases.SwitchOptions{Release: number, Within: within, ByHand: byHand})
			if err != nil {
				return err
			}
			printSwitched(call.Out, made)
			if made.Trial == nil {
				return nil
			}
			releases.ReportTrial(call.Session, s, made.Trial)
			if !wait {
				return problem.Status(problem.Trial)
			}
			end, err := releases.AwaitTrial(ctx, call.Session, s)
			return printEnd(call.Out, s, end, err)
		}),
	}
	call.ProductionFlag(c)
	c.Flags().StringVar(&text, "release", "",
		`release number, "next" (highest declared) or 0 (no release)`)
	c.Flags().DurationVar(&within, "confirm-within", 0, "return to the former release unless confirmed in this time")
	c.Flags().StringVar(&by, "confirm-by", "checks",
		`what confirms: health "checks", or "hand" (orrery confirm)`)
	c.Flags().BoolVar(&wait, "wait", false, "with --confirm-within: wait until the trial ends")
	return c
}

func printSwitched(out io.Writer, made *releases.Switched) {
	if made.Already {
		fmt.Fprintf(out, "%s: release %s is already live.\n", made.Site, register.ReleaseNames(made.To))
		return
	}
	fmt.Fprintf(out, "%s: %s at release %s, formerly %s, switched in %s.\n", made.Site,
		humanize.Plural(len(made.To), "node"),
		register.ReleaseNames(made.To), register.ReleaseNames(made.From), made.Took.Round(time.Millisecond))
	if made.Outage > 0 {
		fmt.Fprintf(out, "All hosts moved their links within %s; all nodes were healthy %s after the first disturbance.\n",
			made.Skew.Round(100*time.Microsecond), made.Outage.Round(time.Millisecond))
	}
	if made.Kept {
		fmt.Fprintln(out, "The former release is kept: orrery rollback returns to it.")
	}
}
