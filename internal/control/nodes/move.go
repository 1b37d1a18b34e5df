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
	"orrery/internal/problem"
	"orrery/internal/site"
)

// A Moved node is on another host now.
type Moved struct {
	Node string `json:"node"`
	Host string `json:"host"`
	// Away is for how many seconds it did not run: from the moment it was to stop until it had started. Healthy is the same until its health was proven; 0: that was not checked, as with one that did not run.
	Away    float64 `json:"away"`
	Healthy float64 `json:"healthy,omitempty"`
}

// MoveJob gives the job that moves nodes to hosts; moves gives the host of each. If it fails before a node was given away, that goes on where it was.
func MoveJob(c *control.Session, s *site.Site, f *apply.Fleet, moves map[string]string) *control.Job {
	goal := plan.Goal{Releases: f.Releases()}
	return &control.Job{
		Session: c, Site: s, Base: s, Hosts: f,
		Plan: func(seen []observe.Host) (*plan.Plan, error) { return planMove(s, seen, goal, moves) },
		Back: func(seen []observe.Host, failed *plan.Plan) (*plan.Plan, error) {
			return plan.MoveBack(s, seen, goal, failed)
		},
		Ask: func(p *plan.Plan) (bool, error) {
			disturbed := p.Disturbed()
			if len(disturbed) == 0 {
				return false, nil
			}
			return c.AskProduction(s, "For a moment, these would stand still: "+phrase.List(disturbed, 12)+".")
		},
	}
}

func planMove(s *site.Site, seen []observe.Host, goal plan.Goal, moves map[string]string) (*plan.Plan, error) {
	p, err := plan.MoveNodes(s, seen, goal, moves)
	if err != nil {
		return nil, err
	}
	return p, hosts.Joined(s, seen, p)
}

// moving gives the hosts of a site, and where the nodes that selectors mean are to go.
func moving(ctx context.Context, c *control.Session, s *site.Site, selectors []string, to string) (*apply.Fleet, map[string]string, error) {
	if _, ok := s.Host(to); !ok {
		return nil, nil, problem.New(problem.Usage, "no host is called %q", to).Try("the site has %s", phrase.List(hosts.Names(s), 12))
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
	r, err := MoveJob(c, s, f, moves).Run(ctx)
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
	return planMove(s, seen, plan.Goal{Releases: f.Releases()}, moves)
}

// WhatMoved tells which nodes have moved in a run, and how long each was away.
func WhatMoved(r *apply.Result) (all []Moved) {
	stopped, at := map[string]time.Time{}, map[string]int{}
	for _, s := range r.Done {
		t := r.Spans[s.N]
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
