package releases

import (
	"context"
	"fmt"
	"slices"

	"orrery/internal/control"
	"orrery/internal/observe"
	"orrery/internal/plan"
	"orrery/internal/plan/release"
	"orrery/internal/problem"
	"orrery/internal/site"
	"orrery/internal/text/humanize"
)

// Pruned is what was removed with old releases.
type Pruned struct {
	Nodes    int
	Releases []int
}

// A pruneOp removes old releases of a site.
type pruneOp struct {
	control.Plain
	site *site.Site
	keep int // how many of the newest releases that are not needed to keep
}

func (p pruneOp) Plan(_ context.Context, seen []observe.Host) (*plan.Plan, error) {
	return release.Prune(p.site, seen, p.keep), nil
}

func (p pruneOp) Confirm(c *control.Session, of *plan.Plan) (bool, error) {
	return c.AskProduction(p.site, fmt.Sprintf("%s would be removed.", humanize.Plural(countRemoved(of), "release")))
}

// Prune removes the releases of a site, except those that are needed and the newest keep of the
// others. It returns nil if there was nothing to do.
func Prune(ctx context.Context, c *control.Session, s *site.Site, keep int) (*Pruned, error) {
	f, err := c.Hosts(ctx, s)
	if err != nil {
		return nil, err
	}
	if keep < 0 {
		return nil, problem.New(problem.Usage, "--keep %d: must not be negative", keep).Try("use 0 or more")
	}
	j := &control.Job{Session: c, Site: s, Base: s, Hosts: f, Do: pruneOp{site: s, keep: keep}}
	result, err := j.Run(ctx)
	if err != nil || result == nil {
		return nil, err
	}
	gone := &Pruned{}
	for _, step := range result.Done {
		switch step.Kind {
		case plan.ForgetRelease:
			if !slices.Contains(gone.Releases, step.Release) { // each of several hosts has a step
				gone.Releases = append(gone.Releases, step.Release)
			}
		case plan.DestroyNode:
			gone.Nodes++
		}
	}
	c.Connector(s).Releases(f).RemoveFromLock(ctx, gone.Releases)
	return gone, nil
}

// countRemoved counts the releases that a plan removes, each once even if several hosts remove it.
func countRemoved(p *plan.Plan) int {
	all := map[int]bool{}
	for _, s := range p.Steps {
		if s.Kind == plan.ForgetRelease {
			all[s.Release] = true
		}
	}
	return len(all)
}
