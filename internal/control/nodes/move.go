package nodes

import (
	"context"
	"time"

	"orrery/internal/apply"
	"orrery/internal/control"
	"orrery/internal/control/hosts"
	"orrery/internal/control/secrets"
	"orrery/internal/observe"
	"orrery/internal/plan"
	"orrery/internal/site"
	"orrery/internal/text/humanize"
)

// A MovedNode is a node that was moved to another host.
type MovedNode struct {
	Node string `json:"node"`
	Host string `json:"host"`
	// Quarantine is the release of the instance in quarantine that was moved along, or "" for the
	// live instance.
	Quarantine string `json:"quarantine,omitempty"`
	// Away is the number of seconds during which the node did not run, from the request to stop it
	// until it had started. Healthy is the same until its health checks passed, or 0 if they were
	// not run, for example because the node did not run before.
	Away    float64 `json:"away"`
	Healthy float64 `json:"healthy,omitempty"`
}

// A MoveOp is the operation that moves nodes to other hosts. If it fails before a node was handed
// over, the node continues on its former host.
type MoveOp struct {
	control.Plain
	Session *control.Session
	Site    *site.Site
	Fleet   *apply.Fleet
	To      map[string]string // node name to host name
}

// Job returns the job that carries out the move. The operation do is the MoveOp itself, or embeds
// it.
func (m *MoveOp) Job(do control.Operation) *control.Job {
	return &control.Job{Session: m.Session, Site: m.Site, Base: m.Site, Hosts: m.Fleet, Do: do}
}

// Plan returns the steps of the move.
func (m *MoveOp) Plan(ctx context.Context, seen []observe.Host) (*plan.Plan, error) {
	if err := m.Session.Connector(m.Site).Releases(m.Fleet).LoadReleases(ctx,
		quarantinedReleases(seen, m.To)); err != nil {
		return nil, err
	}
	p, err := plan.MoveNodes(m.Site, seen, plan.Goal{Releases: m.Fleet.Views().Sites()}, m.To)
	if err != nil {
		return nil, err
	}
	return p, hosts.CheckColocated(m.Site, seen, p)
}

// Confirm asks for consent to stop the nodes for a moment if the site is in production.
func (m *MoveOp) Confirm(c *control.Session, p *plan.Plan) (asked bool, err error) {
	disturbed := p.DisturbedNodes()
	if len(disturbed) == 0 {
		return false, nil
	}
	return c.AskProduction(m.Site, "These would be frozen for a moment: "+humanize.List(disturbed, 12)+".")
}

// Commit removes the moved nodes' own secrets from their former hosts.
func (m *MoveOp) Commit(ctx context.Context) error { return secrets.Forget(ctx, m.Session, m.Fleet) }

// Revert returns the steps by which nodes that were not handed over continue on their former hosts.
func (m *MoveOp) Revert(seen []observe.Host, failed *plan.Plan) (*plan.Plan, error) {
	return plan.MoveBack(m.Site, seen, plan.Goal{Releases: m.Fleet.Views().Sites()}, failed)
}

// quarantinedReleases returns the releases of moved nodes that are in quarantine, including nodes
// that are being moved.
func quarantinedReleases(seen []observe.Host, moves map[string]string) map[string]int {
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
		for j := range seen[i].OutgoingMoves {
			see(&seen[i].OutgoingMoves[j].Node)
		}
	}
	return all
}

// newMoveOp returns the operation that moves the selected nodes to a host.
func newMoveOp(ctx context.Context, c *control.Session, s *site.Site, selectors []string, to string) (*MoveOp, error) {
	if _, ok := s.Host(to); !ok {
		return nil, hosts.UnknownHostError(s, to)
	}
	f, chosen, err := control.SelectedHosts(ctx, c, s, selectors)
	if err != nil {
		return nil, err
	}
	m := &MoveOp{Session: c, Site: s, Fleet: f, To: map[string]string{}}
	for name := range chosen {
		m.To[name] = to
	}
	return m, nil
}

// Move moves the selected nodes to a host. It returns nil if they are there already.
func Move(ctx context.Context, c *control.Session, s *site.Site, selectors []string, to string) ([]MovedNode, error) {
	m, err := newMoveOp(ctx, c, s, selectors, to)
	if err != nil {
		return nil, err
	}
	r, err := m.Job(m).Run(ctx)
	if r == nil {
		return nil, err
	}
	return MovedNodes(r), err
}

// MovePlan returns the plan that Move would carry out.
func MovePlan(ctx context.Context, c *control.Session, s *site.Site, selectors []string, to string) (*plan.Plan,
	error) {
	m, err := newMoveOp(ctx, c, s, selectors, to)
	if err != nil {
		return nil, err
	}
	seen, err := c.Observe(ctx, m.Fleet)
	if err != nil {
		return nil, err
	}
	return m.Plan(ctx, seen)
}

// MovedNodes returns which nodes were moved in a run, and how long each was away.
func MovedNodes(r *apply.Result) (all []MovedNode) {
	stopped, at := map[string]time.Time{}, map[string]int{}
	for _, s := range r.Done {
		t := r.Spans[s.N]
		if of := s.Old; of != nil && of.Staged {
			if s.Kind == plan.ReceiveNode {
				all = append(all, MovedNode{Node: s.Subject, Host: s.Host, Quarantine: site.ReleaseName(of.Release)})
			}
			continue
		}
		switch s.Kind {
		case plan.StopNode:
			stopped[s.Subject] = t.Began
		case plan.ReceiveNode:
			at[s.Subject] = len(all)
			all = append(all, MovedNode{Node: s.Subject, Host: s.Host})
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
