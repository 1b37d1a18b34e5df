package cli

import (
	"context"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"orrery/internal/apply/local"
	"orrery/internal/observe"
	"orrery/internal/plan"
	"orrery/internal/plan/release"
	"orrery/internal/problem"
	"orrery/internal/site"
	"orrery/internal/site/twin"
)

func (a *app) stageVerb() *cobra.Command {
	var text string
	how := staging{parallel: defaultParallel()}
	c := &cobra.Command{
		Use:   "stage [SELECTOR...] --release NUMBER",
		Short: "Build a release and prove it in quarantine, beside what is live",
		Long: `Makes the nodes of a release beside those that are live: the same names, addresses and MACs, on networks of their own that lead nowhere.
Their roles are applied and their health is proven in there. Volumes that are not for two are copies; what only live nodes do is not done.
From then on nothing changes under the release: it keeps a copy of the site directory. "orrery switch" makes it live.

Nodes of the release that "orrery rollback" returns to are left as they are: they need not be staged, "orrery switch" makes them live again. A change of
them is refused, unless --give-up-rollback says that there need be no way back to them.`,
		Example: "  orrery stage system --release 701",
		RunE: func(c *cobra.Command, args []string) error {
			s, err := a.load()
			if err != nil {
				return err
			}
			if how.number, err = releaseNumber(s, text); err != nil {
				return err
			}
			return a.stage(c.Context(), s, args, how)
		},
	}
	c.Flags().StringVar(&text, "release", "", `the release's number, or "next": the highest that is declared`)
	c.Flags().BoolVar(&how.giveUp, "give-up-rollback", false, "stage anew also what rollback returns to; there is no way back to it then")
	c.Flags().IntVar(&how.parallel, "parallel", how.parallel, "most steps under way at once")
	return c
}

// A staging says what is staged, and how.
type staging struct {
	number   int
	giveUp   bool // also what rollback returns to
	parallel int
}

func (a *app) stage(ctx context.Context, s *site.Site, selectors []string, how staging) error {
	number := how.number
	if number == 0 {
		return problem.New(problem.Usage, "what is of no release cannot be staged").Try("declare it as a release: [release.700]")
	}
	staged, err := a.quarantine(s, number)
	if err != nil {
		return err
	}
	chosen, err := choose(staged, selectors)
	if err != nil {
		return err
	}
	h, err := a.here(s)
	if err != nil {
		return err
	}
	h.Site = staged
	goal := plan.Goal{Nodes: chosen}
	var spared []string
	j := &job{app: a, site: staged, base: s, host: h, parallel: how.parallel,
		begin: func() error {
			if how.giveUp {
				if err := a.giveUp(h, number, goal); err != nil {
					return err
				}
			}
			if h.Site != staged { // of the copy that is kept already
				return nil
			}
			return a.keepRelease(s, staged, number)
		},
		plan: func(hosts []observe.Host) (*plan.Plan, error) {
			if how.giveUp {
				hosts = slices.Clone(hosts)
				hosts[0].Releases = release.GiveUp(hosts[0].Releases, number, goal)
			}
			spared = release.Spared(staged, hosts, goal)
			p, of, err := release.Stage(staged, a.stagedBefore(s, number), hosts, goal)
			if err == nil {
				h.Site = of
			}
			return p, err
		},
	}
	result, err := j.run(ctx)
	if err != nil {
		return err
	}
	if result == nil {
		fmt.Fprintf(a.out, "release %d of %s is staged: nothing to do.\n", number, s.Key())
		a.tellSpared(spared, number)
		return nil
	}
	if err := a.status(ctx, s, selectors); err != nil {
		return err
	}
	for _, what := range h.Left() {
		fmt.Fprintf(a.out, "Not in the copy of %s.\n", what)
	}
	a.tellSpared(spared, number)
	of := ""
	for _, text := range selectors {
		of += " " + text
	}
	shell, change := fmt.Sprintf("orrery shell --release %d NODE", number), fmt.Sprintf("orrery switch%s --release %d", of, number)
	wide := max(len(shell), len(change))
	fmt.Fprintf(a.out, "\n  %-*s  a terminal in a node in quarantine\n  %-*s  make it live\n", wide, shell, wide, change)
	return nil
}

// giveUp takes down that rollback returns to a release no longer.
func (a *app) giveUp(h *local.Host, number int, goal plan.Goal) error {
	r, err := h.ReadReleases()
	if err != nil {
		return err
	}
	return h.WriteReleases(release.GiveUp(r, number, goal))
}

// tellSpared says which nodes were left alone, and what can be done with them.
func (a *app) tellSpared(nodes []string, number int) {
	if len(nodes) > 0 {
		fmt.Fprintf(a.out, "Left as they were when they were live, because orrery rollback returns to them: %s. Make them live with orrery switch --release %d, or stage them anew with --give-up-rollback.\n",
			shortList(nodes, 12), number)
	}
}

// stagedBefore gives the site of a release's quarantine as it was staged before, or nil if it was not, or that cannot be read.
func (a *app) stagedBefore(s *site.Site, number int) *site.Site {
	made, err := a.loadRelease(s, number)
	if err != nil {
		return nil
	}
	staged := *made
	staged.Stage = number
	return &staged
}

// quarantine gives the site of a release's quarantine.
func (a *app) quarantine(s *site.Site, number int) (*site.Site, error) {
	if s.Original == nil {
		return twin.Quarantine(s, number)
	}
	made, err := a.asTwin(s.Original, s.Twin, number)
	if err != nil {
		return nil, err
	}
	staged := *made
	staged.Stage = number
	return &staged, nil
}
