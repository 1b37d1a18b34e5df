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

// A pathArg is what an argument names: a path on this machine, in a node, or in each of several nodes.
type pathArg struct {
	nodes []*site.Node // none for this machine
	many  bool         // given by a selector, even if it matches one node
	path  string
}

func parsePathArg(s *site.Site, arg string) (pathArg, error) {
	name, at, inNode := strings.Cut(arg, ":")
	if !inNode || strings.Contains(name, "/") {
		absolute, err := filepath.Abs(arg)
		if strings.HasSuffix(arg, "/") {
			absolute += "/"
		}
		return pathArg{path: absolute}, err
	}
	if !strings.HasPrefix(at, "/") {
		at = "/root/" + at
	}
	if n, ok := s.Node(name); ok {
		return pathArg{nodes: []*site.Node{n}, path: at}, nil
	}
	nodes, err := selector.Select(s, name)
	return pathArg{nodes: nodes, many: true, path: at}, err
}

// node returns the name of the node of a spot, or "" for this machine. If the spot has several
// nodes, it returns the argument.
func (p pathArg) node(one string) string {
	switch {
	case p.nodes == nil:
		return ""
	case p.many:
		return one
	}
	return p.nodes[0].Name
}

// endpoint returns the place of a spot in one of its nodes.
func (p pathArg) endpoint(c *Group, one string) nodecopy.Endpoint {
	node := p.node(one)
	if node == "" {
		return nodecopy.Endpoint{Path: p.path}
	}
	return nodecopy.Endpoint{In: c.runner(node), Path: p.path}
}

// A CopyJob is a copy with its sources and its destination.
type CopyJob struct {
	Group           // the nodes that are copied to or from
	all   []pathArg // the destination, followed by the sources
}

// NewCopyJob parses the arguments of a copy.
func NewCopyJob(ctx context.Context, c *control.Session, s *site.Site, sources []string,
	destination string) (*CopyJob, error) {
	to, err := parsePathArg(s, destination)
	if err != nil {
		return nil, err
	}
	all := []pathArg{to}
	for _, source := range sources {
		from, err := parsePathArg(s, source)
		if err != nil {
			return nil, err
		}
		all = append(all, from)
	}
	crowd, err := groupToCopy(ctx, c, s, all)
	if err != nil {
		return nil, err
	}
	return &CopyJob{*crowd, all}, nil
}

// Several reports whether several nodes are copied to or from, including a selector that matches
// just one.
func (c *CopyJob) Several() bool { return hasGroup(c.all) }

// Once copies to or from one node. It also handles arguments without a node, which are refused.
func (c *CopyJob) Once(ctx context.Context, moved func(bytes int64)) error {
	return c.withTimeout(ctx, func(ctx context.Context) error { return c.copyOne(ctx, "", moved) })
}

// Each copies to or from each of the nodes, and displays the results.
func (c *CopyJob) Each(ctx context.Context, show Output, moved func(bytes int64)) ([]Result, error) {
	return c.RunShown(ctx, show, func(ctx context.Context, i int, _ host.Runner, _ NodeOutput) error {
		return c.copyOne(ctx, c.Nodes[i].Name, moved)
	})
}

// copyOne copies to or from one of the nodes. Each of several source nodes has a directory of its
// own in the destination.
func (c *CopyJob) copyOne(ctx context.Context, node string, moved func(int64)) error {
	to, sources := c.all[0], c.all[1:]
	for _, from := range sources {
		at, in, several := to.endpoint(&c.Group, node), from.endpoint(&c.Group, node), len(sources) > 1
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
func (c *CopyJob) transfer(ctx context.Context, a, b string, from, to nodecopy.Endpoint, several bool) error {
	if a != "" && b != "" {
		if direct := c.Roll.CopyBetween(a, b); direct != nil {
			return nodecopy.WithErrors(ctx, from, to, func(ctx context.Context) error {
				return direct(ctx, apply.CopyTransfer{Path: from.Path, Into: to.Path, Several: several}, from.Moved)
			})
		}
	}
	return nodecopy.Copy(ctx, from, to, several)
}

func hasGroup(all []pathArg) bool {
	return slices.ContainsFunc(all, func(p pathArg) bool { return p.many })
}

// groupToCopy returns the nodes to copy to or from. They are those of the only selector or, if there is
// no selector, one node.
func groupToCopy(ctx context.Context, session *control.Session, s *site.Site, all []pathArg) (*Group, error) {
	c := &Group{}
	for i, p := range all {
		switch {
		case p.nodes == nil:
		case p.many && i > 0 && all[0].many:
			return nil, problem.New(problem.Usage, "cannot copy from several nodes to several nodes").
				Try("name one node, or a directory on this host")
		case p.many || c.Nodes == nil:
			if c.Nodes != nil && hasGroup(all[:i]) && !slices.Equal(c.Nodes, p.nodes) {
				return nil, problem.New(problem.Usage, "the two selectors choose different nodes").
					Try("copy from one node at a time")
			}
			c.Nodes = p.nodes
		}
	}
	if c.Nodes == nil {
		return c, nil // the copy will be refused with an appropriate message
	}
	var err error
	if c.Roll, err = way.NewDirectory(ctx, session, s); err != nil {
		return nil, err
	}
	c.Runners, err = c.Roll.Runners()
	return c, err
}
