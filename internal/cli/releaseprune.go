package cli

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"orrery/internal/control"
	"orrery/internal/observe"
	"orrery/internal/phrase"
	"orrery/internal/plan"
	"orrery/internal/plan/release"
	"orrery/internal/problem"
)

func (a *app) releasePrune() *cobra.Command {
	keep := 2
	c := &cobra.Command{
		Use: "prune", Short: "Remove old releases", Args: cobra.NoArgs,
		Long: `Removes all releases but those that are live, to which a rollback or the end of a trial returns, the one that was confirmed last, and
the newest of the others.`,
		RunE: func(c *cobra.Command, _ []string) error {
			s, err := a.Load()
			if err != nil {
				return err
			}
			h, err := a.Here(s)
			if err != nil {
				return err
			}
			if keep < 0 {
				return problem.New(problem.Usage, "--keep %d", keep).Try("0 or more")
			}
			j := &control.Job{Session: &a.Session, Site: s, Base: s, Host: h,
				Plan: func(hosts []observe.Host) (*plan.Plan, error) { return release.Prune(s, hosts, keep), nil },
				Ask: func(p *plan.Plan) (bool, error) {
					return a.AskProduction(s, fmt.Sprintf("%s would be removed.", phrase.Count(p.Counts()[plan.ForgetRelease], "release")))
				},
			}
			result, err := j.Run(c.Context())
			if err != nil {
				return err
			}
			if result == nil {
				fmt.Fprintf(a.out, "%s: nothing to prune.\n", s.Key())
				return nil
			}
			var gone []string
			for _, step := range result.Done {
				if step.Kind == plan.ForgetRelease {
					gone = append(gone, strconv.Itoa(step.Release))
				}
			}
			fmt.Fprintf(a.out, "%s: %s of releases removed (%s).\n", s.Key(), phrase.Count(done(result.Done, plan.DestroyNode), "node"), strings.Join(gone, ", "))
			return nil
		},
	}
	a.productionFlag(c)
	c.Flags().IntVar(&keep, "keep", keep, "how many releases to keep that could be removed, newest first")
	return c
}
