package control

import (
	"context"

	"orrery/internal/apply"
	"orrery/internal/engine/nodedir"
	"orrery/internal/host"
	"orrery/internal/observe"
	"orrery/internal/problem"
	"orrery/internal/site"
)

// Runners gives the ways into all nodes that run. The site file may be ahead of what runs, so the ids are those on record.
func (c *Session) Runners(ctx context.Context, s *site.Site) (map[string]host.Runner, error) {
	f, err := c.Hosts(ctx, s)
	if err != nil {
		return nil, err
	}
	on := make([][]observe.Node, len(f.All))
	if err := f.Each(func(i int, h *apply.Steered) (err error) {
		on[i], err = h.Nodes(ctx)
		return err
	}); err != nil {
		return nil, err
	}
	all := map[string]host.Runner{}
	for i, h := range f.All {
		for k := range on[i] {
			n := &on[i][k]
			if n.State != observe.Running || !c.Meant(n) {
				continue
			}
			if all[n.Name], err = c.wayInto(h, n); err != nil {
				return nil, err
			}
		}
	}
	return all, nil
}

// wayInto gives the way into a node, which for those who are not root does not lead to where they would become that.
func (c *Session) wayInto(h *apply.Steered, n *observe.Node) (host.Runner, error) {
	if c.Barred(n) {
		return barred{name: n.Name}, nil
	}
	return h.Runner(&n.Node)
}

// Barred reports whether the caller may not enter a node.
func (c *Session) Barred(n *observe.Node) bool { return c.Member != nil && n.Privileged }

// Meant reports whether an instance of a node is of the release that was asked for.
func (c *Session) Meant(n *observe.Node) bool {
	if c.Release == Live {
		return !n.Staged
	}
	return n.Release == c.Release
}

// Running gives a way into a node that runs.
func (c *Session) Running(ctx context.Context, s *site.Site, name string) (host.Runner, error) {
	all, err := c.Runners(ctx, s)
	if err != nil {
		return nil, err
	}
	if in, ok := all[name]; ok {
		return in, nil
	}
	return nil, NotRunning(name)
}

// NotRunning says that a node does not run.
func NotRunning(name string) error {
	return problem.New(problem.Failed, "node %s does not run", name).Try("orrery up %s", name)
}

// Declared gives a node by name.
func Declared(s *site.Site, name string) (*site.Node, error) {
	if n, ok := s.Node(name); ok {
		return n, nil
	}
	var names []string
	for _, n := range s.Nodes {
		names = append(names, n.Name)
	}
	p := problem.New(problem.Usage, "no node is called %q", name)
	if near := problem.Nearest(name, names); near != "" {
		return nil, p.Try("did you mean %s?", near)
	}
	return nil, p.Try("orrery query lists the nodes")
}

// LiveNode gives what is on record of a node that is live.
func (c *Session) LiveNode(s *site.Site, name string) (*nodedir.Record, error) {
	all, err := nodedir.All(c.Dirs, s.Key())
	if err != nil {
		return nil, err
	}
	for _, f := range all {
		if f.Whole && f.Record.Name == name && !f.Record.Staged {
			return f.Record, nil
		}
	}
	if _, declared := s.Node(name); !declared {
		return nil, problem.New(problem.Usage, "%s has no node %s", s.Name, name).Try("orrery ls lists its nodes")
	}
	return nil, problem.New(problem.Failed, "node %s is not on this host, so it cannot be replaced", name).Try("orrery up %s makes it; then run the same command again", name)
}
