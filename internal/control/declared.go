package control

import (
	"orrery/internal/observe"
	"orrery/internal/problem"
	"orrery/internal/site"
)

// IsForbidden reports whether the caller may not enter a node.
func IsForbidden(c *Session, n *observe.Node) bool { return c.Member != nil && n.Privileged }

// InSelectedRelease reports whether an instance of a node belongs to the release that the caller selected.
func InSelectedRelease(c *Session, n *observe.Node) bool {
	if c.Release == Live {
		return !n.Staged
	}
	return n.Release == c.Release
}

// DeclaredNode returns the node called name, or a Usage problem if the site file does not declare it.
func DeclaredNode(s *site.Site, name string) (*site.Node, error) {
	if n, ok := s.Node(name); ok {
		return n, nil
	}
	var names []string
	for _, n := range s.Nodes {
		names = append(names, n.Name)
	}
	p := problem.New(problem.Usage, "no node is called %q", name)
	if near := problem.Suggest(name, names); near != "" {
		return nil, p.Try("did you mean %s?", near)
	}
	return nil, p.Try("orrery query lists the nodes")
}
