package local

import (
	"context"
	"path/filepath"

	"orrery/internal/apply"
	"orrery/internal/engine"
	"orrery/internal/host"
	"orrery/internal/observe"
	"orrery/internal/site/spec"
	"orrery/internal/volume"
)

// Sample reads what the kernel has counted of a node.
func (w *Worker) Sample(n *spec.Node) host.Sample {
	if g, able := w.Engines[n.Engine].(engine.Grouped); able {
		return host.SampleOf(g.Cgroup(engine.RefOf(n)))
	}
	return host.SampleOf(filepath.Join("orrery", "no such group"))
}

// Usage tells what a node uses, from two samples of it.
func (w *Worker) Usage(ctx context.Context, n *observe.Node, before, now host.Sample) *apply.Usage {
	u := &apply.Usage{Processors: -1, Memory: -1, Pids: -1, Disk: -1, Limits: n.Limits}
	if n.Runs() {
		u.Processors, u.Memory, u.Pids = host.Processors(before, now), now.Memory, now.Pids
	}
	if l, able := w.Engines[n.Engine].(engine.Layered); able {
		if size, err := volume.SizeOf(ctx, l.Private(engine.RefOf(&n.Node))); err == nil {
			u.Disk, u.Partial = size.Disk, size.Partial
		}
	}
	for _, m := range n.Mounts {
		if m.Shared || !m.From().WithState || m.Copy == spec.NoCopy {
			continue
		}
		if size, err := volume.SizeOf(ctx, volume.Path(w.Dirs, n.Site, n.Name, m)); err == nil {
			u.Volumes += size.Disk
			u.Partial = u.Partial || size.Partial
		}
	}
	return u
}
