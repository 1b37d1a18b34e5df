package cli

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"orrery/internal/observe"
	"orrery/internal/plan"
	"orrery/internal/plan/release"
	"orrery/internal/problem"
)

func (a *app) releasePrune() *cobra.Command {
	keep := 2
	var k consent
	c := &cobra.Command{
		Use: "prune", Short: "Remove old releases", Args: cobra.NoArgs,
		Long: `Removes all releases but those that are live, to which a rollback or the end of a trial returns, the one that was confirmed last, and
the newest of the others.`,
		RunE: func(c *cobra.Command, _ []string) error {
			s, err := a.load()
			if err != nil {
				return err
			}
			h, err := a.here(s)
			if err != nil {
				return err
			}
			if keep < 0 {
				return problem.New(problem.Usage, "--keep %d", keep).Try("0 or more")
			}
			j := &job{app: a, site: s, base: s, host: h, parallel: defaultParallel(),
				plan: func(hosts []observe.Host) (*plan.Plan, error) { return release.Prune(s, hosts, keep), nil },
				ask: func(p *plan.Plan) error {
					return a.askProduction(s, fmt.Sprintf("%s would be removed.", count(p.Counts()[plan.ForgetRelease], "release")), k)
				},
			}
			result, err := j.run(c.Context())
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
			fmt.Fprintf(a.out, "%s: %s of releases removed (%s).\n", s.Key(), count(done(result.Done, plan.DestroyNode), "node"), strings.Join(gone, ", "))
			return nil
		},
	}
	k.flags(c)
	c.Flags().IntVar(&keep, "keep", keep, "how many of those that need not be kept are kept all the same, the newest")
	return c
}
