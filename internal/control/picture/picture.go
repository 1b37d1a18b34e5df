// Package picture observes a site for a drawing of it.
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

// Of returns a picture of the nodes that selectors mean: how they are now if the site is up, else as they are
// declared. Hidden reports that it is up and that the caller may not see how its nodes are, and silent why
// hosts do not answer.
func Of(ctx context.Context, c *control.Session, s *site.Site, selectors []string, declared bool) (p graph.Picture,
	hidden bool, silent, err error) {
	p = graph.Picture{Site: s, Host: hostName(s)}
	if p.Nodes, err = selector.Select(s, selectors...); err != nil {
		return p, false, nil, err
	}
	up := slices.ContainsFunc(c.Register().SitesUp(), func(m register.Marker) bool {
		return m.Site == s.Name && m.Twin == s.Twin
	})
	switch {
	case declared:
		return p, false, nil, nil
	case c.AllowedOn(s) != nil:
		return p, up, nil, nil
	}
	silent, err = see(ctx, c, &p, selectors, up)
	return p, false, silent, err
}

// hostName returns the host of nodes that name none: the only one that there is.
func hostName(s *site.Site) string {
	switch len(s.Hosts) {
	case 0:
		return "local"
	case 1:
		return s.Hosts[0].Name
	}
	return ""
}

// see puts into a picture how the nodes are that are live. If none is there, and this machine has
// no mark that the site is up, it stays as it is declared: other machines keep no mark for this
// one.
func see(ctx context.Context, c *control.Session, p *graph.Picture, selectors []string, up bool) (silent, err error) {
	r, err := status.Read(ctx, c, p.Site, selectors)
	if err != nil {
		return nil, err
	}
	if !up && !slices.ContainsFunc(r.Nodes, func(n status.Node) bool { return n.State != status.Absent }) {
		return r.Silent, nil
	}
	p.Nodes, p.Seen, p.Silent = nil, map[string]graph.Look{}, r.Unknown()
	for i, each := range r.Nodes {
		look := p.Seen[each.Node]
		if each.Quarantine { // it comes behind the live one
			look.Beside = append(look.Beside, "release "+strconv.Itoa(each.Release)+" in quarantine, "+each.State)
		} else {
			p.Nodes, look = append(p.Nodes, placed(r.Declared(i), each.Host)), lookOf(each)
		}
		p.Seen[each.Node] = look
	}
	return r.Silent, nil
}

// placed returns a node as it is on a host; "-": nobody knows on which.
func placed(n *site.Node, host string) *site.Node {
	on := *n
	if on.Host = host; host == "-" {
		on.Host = ""
	}
	return &on
}

// lookOf returns how a node is, for a picture.
func lookOf(r status.Node) graph.Look {
	switch {
	case r.State == status.Absent:
		return graph.Look{Health: graph.Absent, Word: r.State}
	case r.State == status.Unknown:
		return graph.Look{Health: graph.Doubtful, Word: r.State}
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
