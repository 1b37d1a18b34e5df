package status

import (
	"context"
	"slices"
	"strconv"

	"orrery/internal/control"
	"orrery/internal/control/register"
	"orrery/internal/site"
	"orrery/internal/site/graph"
	"orrery/internal/site/selector"
)

// Draw returns a picture of the selected nodes: their current state if the site is up, or else their
// declaration. Hidden reports that the site is up and the caller may not see the state of its
// nodes. Silent is the error of hosts that do not answer.
func Draw(ctx context.Context, c *control.Session, s *site.Site, selectors []string, declared bool) (p graph.Picture,
	hidden bool, silent, err error) {
	p = graph.Picture{Site: s, Host: hostName(s)}
	if p.Nodes, err = selector.Select(s, selectors...); err != nil {
		return p, false, nil, err
	}
	up := slices.ContainsFunc(c.Register().SitesUp(), func(m register.UpRecord) bool {
		return m.Site == s.Name && m.Twin == s.Twin
	})
	switch {
	case declared:
		return p, false, nil, nil
	case c.CheckAllowedOn(s) != nil:
		return p, up, nil, nil
	}
	silent, err = addState(ctx, c, &p, selectors, up)
	return p, false, silent, err
}

// hostName returns the host of nodes that name none, which is the only host.
func hostName(s *site.Site) string {
	switch len(s.Hosts) {
	case 0:
		return "local"
	case 1:
		return s.Hosts[0].Name
	}
	return ""
}

// addState adds the state of the live nodes to a picture. If there are no nodes, and this machine has no
// record that the site is up, the picture stays as declared. Records on other machines are not
// visible here.
func addState(ctx context.Context, c *control.Session, p *graph.Picture, selectors []string, up bool) (silent,
	err error) {
	r, err := Read(ctx, c, p.Site, selectors)
	if err != nil {
		return nil, err
	}
	if !up && !slices.ContainsFunc(r.Nodes, func(n Node) bool { return n.State != Absent }) {
		return r.Silent, nil
	}
	p.Nodes, p.Seen, p.Silent = nil, map[string]graph.NodeState{}, r.Unknown()
	for i, each := range r.Nodes {
		look := p.Seen[each.Node]
		if each.Quarantine { // it follows the live instance
			look.Beside = append(look.Beside, "release "+strconv.Itoa(each.Release)+" in quarantine, "+each.State)
		} else {
			p.Nodes, look = append(p.Nodes, onHost(r.Declared(i), each.Host)), lookOf(each)
		}
		p.Seen[each.Node] = look
	}
	return r.Silent, nil
}

// onHost returns a node with its actual host, or none if host is "-".
func onHost(n *site.Node, host string) *site.Node {
	on := *n
	if on.Host = host; host == "-" {
		on.Host = ""
	}
	return &on
}

// lookOf returns the look of a node in a picture.
func lookOf(r Node) graph.NodeState {
	switch {
	case r.State == Absent:
		return graph.NodeState{Health: graph.Absent, Word: r.State}
	case r.Undeclared:
		return graph.NodeState{Health: graph.Warning, Word: "not declared"}
	case r.State == Unknown:
		return graph.NodeState{Health: graph.Warning, Word: r.State}
	case r.State != "running" && r.IsGood():
		return graph.NodeState{Health: graph.Off, Word: r.State}
	case r.State != "running":
		return graph.NodeState{Health: graph.Bad, Word: r.State, Detail: r.Detail}
	case r.IsGood() && r.Health == "-":
		return graph.NodeState{Health: graph.Good, Word: r.State}
	case r.IsGood():
		return graph.NodeState{Health: graph.Good, Word: r.Health}
	case r.Health == Failed:
		return graph.NodeState{Health: graph.Bad, Word: r.Health, Detail: r.Failure.Found}
	case r.Health == Unhealthy:
		return graph.NodeState{Health: graph.Bad, Word: r.Health, Detail: r.Detail}
	}
	return graph.NodeState{Health: graph.Warning, Word: r.Health, Detail: r.Detail}
}
