package releaseverb

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"orrery/internal/cli/verb"
	"orrery/internal/control"
	"orrery/internal/control/register"
	"orrery/internal/control/releases"
	"orrery/internal/site"
	"orrery/internal/text/humanize"
)

// Stage returns the command `orrery stage`.
func Stage(call *verb.Call) *cobra.Command {
	var text string
	var how releases.StageOptions
	c := &cobra.Command{
		Use:   "stage [SELECTOR...] --release NUMBER",
		Short: "Build a release and prove it in quarantine, beside the live one",
		Long: `Creates the nodes of a release beside the live ones: with the same names,
addresses and MACs, but on isolated networks of their own (quarantine). There,
their roles are applied and their health is proven. Exclusive volumes are
copies, and what only live nodes may do is not done. The release keeps a copy
of the site directory, so later edits do not change it. "orrery switch" makes
it live.

Nodes of the release that "orrery rollback" would return to need not be staged:
"orrery switch" makes them live again. Changing them is refused, unless you
give up that way back with --give-up-rollback.`,
		Example: "  orrery stage system --release 701",
		RunE: call.WithSite(func(ctx context.Context, s *site.Site, selectors []string) (err error) {
			if how.Release, err = register.ReleaseNumber(s, text); err != nil {
				return err
			}
			staged, err := releases.Stage(ctx, call.Session, s, selectors, how)
			if err != nil {
				return err
			}
			return printStaged(ctx, call.Session, call.Out, s, selectors, how.Release, staged)
		}),
	}
	c.Flags().StringVar(&text, "release", "", `number of the release, or "next": the highest declared`)
	c.Flags().BoolVar(&how.GiveUp, "give-up-rollback", false,
		"also stage nodes that rollback returns to, which disables it")
	verb.ParallelFlag(c, &how.Parallel)
	return c
}

func printStaged(ctx context.Context, session *control.Session, out io.Writer, s *site.Site, selectors []string,
	number int, staged *releases.Staged) error {
	if staged.Result == nil {
		fmt.Fprintf(out, "release %d of %s is staged: nothing to do.\n", number, s.Key())
		printSpared(out, staged.Spared, number)
		return nil
	}
	if err := verb.ShowNodes(ctx, session, out, s, selectors); err != nil {
		return err
	}
	for _, what := range staged.Left {
		fmt.Fprintf(out, "Not in the copy of %s.\n", what)
	}
	printSpared(out, staged.Spared, number)
	of := strings.Join(append([]string{"orrery switch"}, selectors...), " ")
	shell, change := fmt.Sprintf("orrery shell --release %d NODE", number), fmt.Sprintf("%s --release %d", of, number)
	wide := max(len(shell), len(change))
	fmt.Fprintf(out, "\n  %-*s  open a terminal in a node in quarantine\n  %-*s  make it live\n", wide, shell, wide, change)
	return nil
}

// printSpared prints which nodes were not staged, and what can be done about it.
func printSpared(out io.Writer, nodes []string, number int) {
	if len(nodes) > 0 {
		fmt.Fprintf(out, "Not staged, because orrery rollback returns to them: %s. "+
			"Make them live with orrery switch --release %d, or stage them with --give-up-rollback.\n",
			humanize.List(nodes, 12), number)
	}
}
