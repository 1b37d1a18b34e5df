// Package picture looks at a site for a drawing of it.
package picture

import (
	"context"
	"slices"
	"strconv"

	"orrery/internal/control"
	"orrery/internal/control/register"
	"orrery/internal/control/status"
	"orrery/internal/site"
	"orrery/internal/site/graph"
	"orrery/internal/site/selector"
)

// Of gives a picture of the nodes that selectors mean: how they are now if the site is up, else as they are declared. Hidden reports that it is up and that the caller may
// not see how its nodes are.
func Of(ctx context.Context, c *control.Session, s *site.Site, selectors []string, declared bool) (p graph.Picture, hidden bool, err error) {
	p = graph.Picture{Site: s, Host: hostName(s)}
	if p.Nodes, err = selector.Select(s, selectors...); err != nil {
		return p, false, err
	}
	up := slices.ContainsFunc(c.SitesUp(), func(m register.Marker) bool { return m.Site == s.Name && m.Twin == s.Twin })
	switch {
	case declared || !up:
		return p, false, nil
	case c.Allowed() != nil:
		return p, true, nil
	}
	return p, false, see(ctx, c, &p, selectors)
}

// hostName gives the host of nodes that name none: the only one that there is.
func hostName(s *site.Site) string {
	switch len(s.Hosts) {
	case 0:
		return "local"
	case 1:
		return s.Hosts[0].Name
	}
	return ""
}

// see puts into a picture how the nodes are that are live.
func see(ctx context.Context, c *control.Session, p *graph.Picture, selectors []string) error {
	r, err := c.Status(ctx, p.Site, selectors)
	if err != nil {
		return err
	}
	p.Nodes, p.Seen = nil, map[string]graph.Look{}
	for i, each := range r.Nodes {
		look := p.Seen[each.Node]
		if each.Quarantine { // it comes behind the live one
			look.Beside = append(look.Beside, "release "+strconv.Itoa(each.Release)+" in quarantine, "+each.State)
		} else {
			p.Nodes, look = append(p.Nodes, r.Declared(i)), lookOf(each)
		}
		p.Seen[each.Node] = look
	}
	return nil
}

// look gives how a node is, for a picture.
func lookOf(r status.Node) graph.Look {
	switch {
	case r.State == "absent":
		return graph.Look{Health: graph.Absent, Word: r.State}
	case r.State != "running" && r.Good():
		return graph.Look{Health: graph.Off, Word: r.State}
	case r.State != "running":
		return graph.Look{Health: graph.Bad, Word: r.State, Detail: r.Detail}
	case r.Good() && r.Health == "-":
		return graph.Look{Health: graph.Good, Word: r.State}
	case r.Good():
		return graph.Look{Health: graph.Good, Word: r.Health}
	case r.Health == status.Unhealthy:
		return graph.Look{Health: graph.Bad, Word: r.Health, Detail: r.Detail}
	}
	return graph.Look{Health: graph.Doubtful, Word: r.Health, Detail: r.Detail}
}
