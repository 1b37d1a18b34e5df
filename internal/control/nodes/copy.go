package nodes

import (
	"context"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"orrery/internal/apply"
	"orrery/internal/control"
	"orrery/internal/control/way"
	"orrery/internal/host"
	"orrery/internal/host/nodecopy"
	"orrery/internal/problem"
	"orrery/internal/site"
	"orrery/internal/site/selector"
)

// A spot is what an argument names: a path on this machine, in a node, or in each of several nodes.
type spot struct {
	nodes []*site.Node // none for this machine
	many  bool         // given by a selector, even if it matches one node
	path  string
}

func spotOf(s *site.Site, arg string) (spot, error) {
	name, at, inNode := strings.Cut(arg, ":")
	if !inNode || strings.Contains(name, "/") {
		absolute, err := filepath.Abs(arg)
		if strings.HasSuffix(arg, "/") {
			absolute += "/"
		}
		return spot{path: absolute}, err
	}
	if !strings.HasPrefix(at, "/") {
		at = "/root/" + at
	}
	if n, ok := s.Node(name); ok {
		return spot{nodes: []*site.Node{n}, path: at}, nil
	}
	nodes, err := selector.Select(s, name)
	return spot{nodes: nodes, many: true, path: at}, err
}

// node returns the name of the node of a spot, or "" for this machine. If the spot has several
// nodes, it returns the argument.
func (p spot) node(one string) string {
	switch {
	case p.nodes == nil:
		return ""
	case p.many:
		return one
	}
	return p.nodes[0].Name
}

// in returns the place of a spot in one of its nodes.
func (p spot) in(c *Crowd, one string) nodecopy.Place {
	node := p.node(one)
	if node == "" {
		return nodecopy.Place{Path: p.path}
	}
	return nodecopy.Place{In: c.in(node), Path: p.path}
}

// A Copying is a copy with its sources and its destination.
type Copying struct {
	Crowd        // the nodes that are copied to or from
	all   []spot // the destination, followed by the sources
}

// NewCopying parses the arguments of a copy.
func NewCopying(ctx context.Context, c *control.Session, s *site.Site, sources []string,
	destination string) (*Copying, error) {
	to, err := spotOf(s, destination)
	if err != nil {
		return nil, err
	}
	all := []spot{to}
	for _, source := range sources {
		from, err := spotOf(s, source)
		if err != nil {
			return nil, err
		}
		all = append(all, from)
	}
	crowd, err := crowdOf(ctx, c, s, all)
	if err != nil {
		return nil, err
	}
	return &Copying{*crowd, all}, nil
}

// Several reports whether several nodes are copied to or from, including a selector that matches
// just one.
func (c *Copying) Several() bool { return manySpots(c.all) }

// Once copies to or from one node. It also handles arguments without a node, which are refused.
func (c *Copying) Once(ctx context.Context, moved func(bytes int64)) error {
	return c.within(ctx, func(ctx context.Context) error { return c.copyOne(ctx, "", moved) })
}

// Each copies to or from each of the nodes, and displays the results.
func (c *Copying) Each(ctx context.Context, show Speech, moved func(bytes int64)) ([]Ending, error) {
	return c.Speak(ctx, show, func(ctx context.Context, i int, _ host.Runner, _ Speaker) error {
		return c.copyOne(ctx, c.Nodes[i].Name, moved)
	})
}

// copyOne copies to or from one of the nodes. Each of several source nodes has a directory of its
// own in the destination.
func (c *Copying) copyOne(ctx context.Context, node string, moved func(int64)) error {
	to, sources := c.all[0], c.all[1:]
	for _, from := range sources {
		at, in, several := to.in(&c.Crowd, node), from.in(&c.Crowd, node), len(sources) > 1
		if from.many {
			at.Path, several = path.Join(at.Path, node)+"/", true
		}
		in.Moved = moved
		if err := c.transfer(ctx, from.node(node), to.node(node), in, at, several); err != nil {
			return err
		}
	}
	return nil
}

// transfer copies between two places, in the nodes a and b or on this machine if these are "".
func (c *Copying) transfer(ctx context.Context, a, b string, from, to nodecopy.Place, several bool) error {
	if a != "" && b != "" {
		if direct := c.Roll.Between(a, b); direct != nil {
			return nodecopy.Told(ctx, from, to, func(ctx context.Context) error {
				return direct(ctx, apply.CopyErrand{Path: from.Path, Into: to.Path, Several: several}, from.Moved)
			})
		}
	}
	return nodecopy.Transfer(ctx, from, to, several)
}

func manySpots(all []spot) bool { return slices.ContainsFunc(all, func(p spot) bool { return p.many }) }

// crowdOf returns the nodes to copy to or from. They are those of the only selector or, if there is
// no selector, one node.
func crowdOf(ctx context.Context, session *control.Session, s *site.Site, all []spot) (*Crowd, error) {
	c := &Crowd{}
	for i, p := range all {
		switch {
		case p.nodes == nil:
		case p.many && i > 0 && all[0].many:
			return nil, problem.New(problem.Usage, "one copy cannot go from several nodes to several").
				Try("name one node, or a directory of this host")
		case p.many || c.Nodes == nil:
			if c.Nodes != nil && manySpots(all[:i]) && !slices.Equal(c.Nodes, p.nodes) {
				return nil, problem.New(problem.Usage, "the two selectors choose different nodes").
					Try("copy from one after the other")
			}
			c.Nodes = p.nodes
		}
	}
	if c.Nodes == nil {
		return c, nil // the copy will be refused with an appropriate message
	}
	var err error
	if c.Roll, err = way.Call(ctx, session, s); err != nil {
		return nil, err
	}
	c.Runners, err = c.Roll.Runners()
	return c, err
}
