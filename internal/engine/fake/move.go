package fake

import (
	"context"
	"slices"

	"orrery/internal/engine"
	"orrery/internal/observe"
	"orrery/internal/problem"
	"orrery/internal/site/spec"
)

var _ engine.Migrator = (*Disk)(nil)

// Capabilities adds that nodes with directories can move between hosts.
func (d *Disk) Capabilities() observe.Capabilities {
	can := d.Engine.Capabilities()
	can.Move = true
	return can
}

// List returns the nodes that were not given away.
func (d *Disk) List(ctx context.Context, site string) ([]observe.Node, error) {
	all, err := d.Engine.List(ctx, site)
	all = slices.DeleteFunc(all, func(n observe.Node) bool { return d.movedAway(engine.RefOf(&n.Node)) })
	for i := range all {
		dir := d.dirs.Dir(engine.RefOf(&all[i].Node))
		all[i].Resume = dir.Move().MustResume()
		dir.Results().Read(&all[i])
	}
	return all, err
}

func (d *Disk) movedAway(ref engine.Ref) bool {
	_, given := d.dirs.Dir(ref).Move().MovedTo()
	return given
}

// Start starts a node that was not given away.
func (d *Disk) Start(ctx context.Context, ref engine.Ref) error {
	if d.movedAway(ref) {
		return problem.New(problem.Surprise, "node %s belongs to another host", ref.Name)
	}
	return d.Engine.Start(ctx, ref)
}

// HostSpecificFiles returns the paths in a node's private layer that do not move with it.
func (d *Disk) HostSpecificFiles(n *spec.Node) []string { return d.dirs.HostSpecificFiles(n) }

// Receive makes a node from the private layer received from another host.
func (d *Disk) Receive(ctx context.Context, n *spec.Node, layer string, m engine.Progress, resumes bool) error {
	if err := d.Engine.Create(ctx, n); err != nil {
		return err
	}
	ref := engine.RefOf(n)
	err := d.dirs.Receive(ctx, n, layer, m, resumes)
	d.mu.Lock()
	defer d.mu.Unlock()
	if err != nil {
		delete(d.nodes, ref)
		return err
	}
	d.nodes[ref].mark = m
	d.nodes[ref].spec.Config = m.Config
	return nil
}
