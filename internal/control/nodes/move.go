package nodes

import (
	"context"
	"time"

	"orrery/internal/apply"
	"orrery/internal/control"
	"orrery/internal/control/hosts"
	"orrery/internal/observe"
	"orrery/internal/phrase"
	"orrery/internal/plan"
	"orrery/internal/site"
)

// A Moved node is on another host now.
type Moved struct {
	Node string `json:"node"`
	Host string `json:"host"`
	// Quarantine is the release of it that is in quarantine, and has gone with it; "": it is what is live.
	Quarantine string `json:"quarantine,omitempty"`
	// Away is for how many seconds it did not run: from the moment it was to stop until it had started. Healthy is the same until its health was proven; 0: that was not checked, as with one that did not run.
	Away    float64 `json:"away"`
	Healthy float64 `json:"healthy,omitempty"`
}

// MoveJob gives the job that moves nodes to hosts; moves gives the host of each. If it fails before a node was given away, that goes on where it was.
func MoveJob(ctx context.Context, c *control.Session, s *site.Site, f *apply.Fleet, moves map[string]string) *control.Job {
	return &control.Job{
		Session: c, Site: s, Base: s, Hosts: f,
		Plan: func(seen []observe.Host) (*plan.Plan, error) { return planMove(ctx, c, s, f, seen, moves) },
		Back: func(seen []observe.Host, failed *plan.Plan) (*plan.Plan, error) {
			return plan.MoveBack(s, seen, plan.Goal{Releases: f.Sites()}, failed)
		},
		Ask: func(c *control.Session, p *plan.Plan) (bool, error) {
			disturbed := p.Disturbed()
			if len(disturbed) == 0 {
				return false, nil
			}
			return c.AskProduction(s, "For a moment, these would stand still: "+phrase.List(disturbed, 12)+".")
		},
	}
}

func planMove(ctx context.Context, c *control.Session, s *site.Site, f *apply.Fleet, seen []observe.Host, moves map[string]string) (*plan.Plan, error) {
	if err := c.Call(s).Learn(ctx, f, beside(seen, moves)); err != nil {
		return nil, err
	}
	p, err := plan.MoveNodes(s, seen, plan.Goal{Releases: f.Sites()}, moves)
	if err != nil {
		return nil, err
	}
	return p, hosts.Joined(s, seen, p)
}

// beside gives the releases of which nodes that move are in quarantine, also on their way.
func beside(seen []observe.Host, moves map[string]string) map[string]int {
	all := map[string]int{}
	see := func(n *observe.Node) {
		if _, moved := moves[n.Name]; moved && n.Staged {
			all[site.ReleaseName(n.Release)] = n.Release
		}
	}
	for i := range seen {
		for j := range seen[i].Nodes {
			see(&seen[i].Nodes[j])
		}
		for j := range seen[i].Given {
			see(&seen[i].Given[j].Node)
		}
	}
	return all
}

// moving gives the hosts of a site, and where the nodes that selectors mean are to go.
func moving(ctx context.Context, c *control.Session, s *site.Site, selectors []string, to string) (*apply.Fleet, map[string]string, error) {
	if _, ok := s.Host(to); !ok {
		return nil, nil, hosts.NoHost(s, to)
	}
	f, chosen, err := c.ChosenHosts(ctx, s, selectors)
	if err != nil {
		return nil, nil, err
	}
	moves := map[string]string{}
	for name := range chosen {
		moves[name] = to
	}
	return f, moves, nil
}

// Move moves the nodes that selectors mean to a host. The result is nil if they are there.
func Move(ctx context.Context, c *control.Session, s *site.Site, selectors []string, to string) ([]Moved, error) {
	f, moves, err := moving(ctx, c, s, selectors, to)
	if err != nil {
		return nil, err
	}
	r, err := MoveJob(ctx, c, s, f, moves).Run(ctx)
	if r == nil {
		return nil, err
	}
	return WhatMoved(r), err
}

// MovePlan gives what Move would do.
func MovePlan(ctx context.Context, c *control.Session, s *site.Site, selectors []string, to string) (*plan.Plan, error) {
	f, moves, err := moving(ctx, c, s, selectors, to)
	if err != nil {
		return nil, err
	}
	seen, err := c.Seen(ctx, f)
	if err != nil {
		return nil, err
	}
	return planMove(ctx, c, s, f, seen, moves)
}

// WhatMoved tells which nodes have moved in a run, and how long each was away.
func WhatMoved(r *apply.Result) (all []Moved) {
	stopped, at := map[string]time.Time{}, map[string]int{}
	for _, s := range r.Done {
		t := r.Spans[s.N]
		if of := s.Was; of != nil && of.Staged {
			if s.Kind == plan.ReceiveNode {
				all = append(all, Moved{Node: s.Subject, Host: s.Host, Quarantine: site.ReleaseName(of.Release)})
			}
			continue
		}
		switch s.Kind {
		case plan.StopNode:
			stopped[s.Subject] = t.Began
		case plan.ReceiveNode:
			at[s.Subject] = len(all)
			all = append(all, Moved{Node: s.Subject, Host: s.Host})
		}
		i, moved := at[s.Subject]
		began, ran := stopped[s.Subject]
		if !moved || !ran {
			continue
		}
		switch s.Kind {
		case plan.StartNode:
			all[i].Away = t.Ended.Sub(began).Seconds()
		case plan.CheckNode:
			all[i].Healthy = t.Ended.Sub(began).Seconds()
		}
	}
	return all
}
