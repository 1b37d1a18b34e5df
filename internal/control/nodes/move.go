package nodes

import (
	"context"
	"time"

	"orrery/internal/apply"
	"orrery/internal/control"
	"orrery/internal/control/hosts"
	"orrery/internal/observe"
	"orrery/internal/plan"
	"orrery/internal/site"
	"orrery/internal/text/humanize"
)

// A Moved node is on another host now.
type Moved struct {
	Node string `json:"node"`
	Host string `json:"host"`
	// Quarantine is the release of it that is in quarantine, and has gone with it; "": it is what is live.
	Quarantine string `json:"quarantine,omitempty"`
	// Away is for how many seconds it did not run: from the moment it was to stop until it had
	// started. Healthy is the same until its health was proven; 0: that was not checked, as with one
	// that did not run.
	Away    float64 `json:"away"`
	Healthy float64 `json:"healthy,omitempty"`
}

// A Moving is the operation that moves nodes to other hosts. If it fails before a node was given
// away, that goes on where it was.
type Moving struct {
	control.Plain
	Session *control.Session
	Site    *site.Site
	Fleet   *apply.Fleet
	To      map[string]string // node -> host
}

// Job returns the job that carries out the move as do says, which is the move itself, or embeds it.
func (m *Moving) Job(do control.Operation) *control.Job {
	return &control.Job{Session: m.Session, Site: m.Site, Base: m.Site, Hosts: m.Fleet, Do: do}
}

// Plan returns the steps of the move.
func (m *Moving) Plan(ctx context.Context, seen []observe.Host) (*plan.Plan, error) {
	if err := m.Session.Call(m.Site).Releases(m.Fleet).Learn(ctx, beside(seen, m.To)); err != nil {
		return nil, err
	}
	p, err := plan.MoveNodes(m.Site, seen, plan.Goal{Releases: m.Fleet.Views().Sites()}, m.To)
	if err != nil {
		return nil, err
	}
	return p, hosts.Joined(m.Site, seen, p)
}

// Confirm asks, in production, whether nodes may stand still.
func (m *Moving) Confirm(c *control.Session, p *plan.Plan) (asked bool, err error) {
	disturbed := p.Disturbed()
	if len(disturbed) == 0 {
		return false, nil
	}
	return c.AskProduction(m.Site, "For a moment, these would stand still: "+humanize.List(disturbed, 12)+".")
}

// Revert lets nodes that were not given away go on where they were.
func (m *Moving) Revert(seen []observe.Host, failed *plan.Plan) (*plan.Plan, error) {
	return plan.MoveBack(m.Site, seen, plan.Goal{Releases: m.Fleet.Views().Sites()}, failed)
}

// beside returns the releases of which nodes that move are in quarantine, also on their way.
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

// newMoving returns the operation that moves the nodes that selectors mean to a host.
func newMoving(ctx context.Context, c *control.Session, s *site.Site, selectors []string, to string) (*Moving, error) {
	if _, ok := s.Host(to); !ok {
		return nil, hosts.NoHost(s, to)
	}
	f, chosen, err := control.ChosenHosts(ctx, c, s, selectors)
	if err != nil {
		return nil, err
	}
	m := &Moving{Session: c, Site: s, Fleet: f, To: map[string]string{}}
	for name := range chosen {
		m.To[name] = to
	}
	return m, nil
}

// Move moves the nodes that selectors mean to a host. The result is nil if they are there.
func Move(ctx context.Context, c *control.Session, s *site.Site, selectors []string, to string) ([]Moved, error) {
	m, err := newMoving(ctx, c, s, selectors, to)
	if err != nil {
		return nil, err
	}
	r, err := m.Job(m).Run(ctx)
	if r == nil {
		return nil, err
	}
	return WhatMoved(r), err
}

// MovePlan returns what Move would do.
func MovePlan(ctx context.Context, c *control.Session, s *site.Site, selectors []string, to string) (*plan.Plan,
	error) {
	m, err := newMoving(ctx, c, s, selectors, to)
	if err != nil {
		return nil, err
	}
	seen, err := c.Seen(ctx, m.Fleet)
	if err != nil {
		return nil, err
	}
	return m.Plan(ctx, seen)
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
