package cli

import (
	"maps"
	"slices"

	"github.com/spf13/cobra"

	"orrery/internal/plan/release"
	"orrery/internal/problem"
	"orrery/internal/site"
)

func (a *app) rollbackVerb() *cobra.Command {
	var k consent
	c := &cobra.Command{
		Use:   "rollback [SELECTOR...]",
		Short: "Return to the former release in one switch; nothing is rebuilt",
		Long: `Returns to the release that was live before, in one switch as "orrery switch" does it. Without a selector, all nodes go back that
have a former release. Data that was written meanwhile to volumes stays there.`,
		RunE: func(c *cobra.Command, args []string) error {
			s, err := a.load()
			if err != nil {
				return err
			}
			t, err := a.turnBack(s, args)
			if err != nil {
				return err
			}
			t.consent = k
			return t.run(c.Context())
		},
	}
	k.flags(c)
	return c
}

// turnBack prepares the return to the former release.
func (a *app) turnBack(s *site.Site, selectors []string) (*turn, error) {
	t, err := a.newTurn(s)
	if err != nil {
		return nil, err
	}
	names := slices.Sorted(maps.Keys(t.before.Former))
	if len(selectors) > 0 {
		chosen, err := choose(s, selectors)
		if err != nil {
			return nil, err
		}
		names = slices.Sorted(maps.Keys(chosen))
	}
	if len(names) == 0 {
		return nil, problem.New(problem.Mistake, "site %s has no former release to return to", s.Key()).Try("orrery release ls shows which are there")
	}
	if t.to, err = release.Former(t.before, names); err != nil {
		return nil, err
	}
	t.back, t.why = true, rolledBack
	return t, a.loadReleases(t.host, t.to)
}
