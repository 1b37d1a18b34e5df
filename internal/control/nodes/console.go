package nodes

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"slices"
	"strings"

	"orrery/internal/apply"
	"orrery/internal/control"
	"orrery/internal/control/way"
	"orrery/internal/host"
	"orrery/internal/observe"
	"orrery/internal/problem"
	"orrery/internal/site"
)

// A Console is the serial console of an existing node.
type Console struct {
	host.Console
	Node string
	Runs bool
}

// ConsoleOf returns the serial console of a node, whether it runs or not.
func ConsoleOf(ctx context.Context, c *control.Session, s *site.Site, name string) (*Console, error) {
	h, n, err := existingNode(ctx, c, s, name)
	if err != nil {
		return nil, err
	}
	of, err := h.Nodes.Console(&n.Node)
	if err != nil {
		return nil, err
	}
	return &Console{of, name, n.Runs()}, nil
}

// existingNode returns an existing node and its host, for direct access to its console or screen.
func existingNode(ctx context.Context, c *control.Session, s *site.Site, name string) (*apply.HostClient, *observe.Node,
	error) {
	if _, err := control.DeclaredNode(s, name); err != nil {
		return nil, nil, err
	}
	f, err := c.Hosts(ctx, s)
	if err != nil {
		return nil, nil, err
	}
	all, err := f.ListNodes(ctx, apply.InspectBrief)
	if err != nil {
		return nil, nil, err
	}
	for on, nodes := range all {
		i := slices.IndexFunc(nodes, func(n observe.Node) bool { return n.Name == name && control.InSelectedRelease(c, &n) })
		if i < 0 {
			continue
		}
		if control.IsForbidden(c, &nodes[i]) {
			return nil, nil, problem.New(problem.Refused, "node %s is privileged; nothing was done", name).
				Try("ask the administrator of this host")
		}
		return f.All[on], &nodes[i], nil
	}
	return nil, nil, way.NotRunningError(name)
}

// Attach opens the console of a running node.
func (c *Console) Attach(ctx context.Context, by host.Holder) (io.ReadWriteCloser, error) {
	if !c.Runs {
		return nil, problem.New(problem.Failed, "node %s does not run", c.Node).
			Try("orrery up %s; orrery console --log %s shows its last output", c.Node, c.Node)
	}
	return c.Open(ctx, by)
}

// LastLines returns the last lines that were printed on the console since the node was last started.
func (c *Console) LastLines(lines int) (text string, err error) {
	printed, err := c.Printed()
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "", problem.New(problem.Failed, "node %s has never run", c.Node).Try("orrery up %s", c.Node)
	case err != nil:
		return "", err
	}
	all := strings.SplitAfter(strings.ReplaceAll(string(printed), "\r\n", "\n"), "\n")
	if all[len(all)-1] == "" {
		all = all[:len(all)-1]
	} else {
		all[len(all)-1] += "\n"
	}
	return strings.Join(all[max(0, len(all)-lines):], ""), nil
}
