package local

import (
	"context"
	"path/filepath"

	"orrery/internal/apply"
	"orrery/internal/engine"
	"orrery/internal/host"
	"orrery/internal/observe"
	"orrery/internal/volume"
)

// ReadUsage reads the usage of nodes.
func (h nodeHost) ReadUsage(ctx context.Context, nodes []observe.Node, before map[int]host.Sample) ([]apply.Reading,
	error) {
	all := make([]apply.Reading, len(nodes))
	for i := range nodes {
		group := filepath.Join("orrery", "no such group")
		if g, ok := h.Engines[nodes[i].Engine].(engine.CgroupProvider); ok {
			group = g.Cgroup(engine.RefOf(&nodes[i].Node))
		}
		now := host.ReadSample(group)
		all[i].Sample = now
		if before != nil {
			all[i].Usage = h.usage(ctx, &nodes[i], before[nodes[i].ID], now)
		}
	}
	return all, ctx.Err()
}

func (h nodeHost) usage(ctx context.Context, n *observe.Node, before, now host.Sample) *apply.Usage {
	u := &apply.Usage{Processors: -1, Memory: -1, Pids: -1, Disk: -1, Limits: n.Limits}
	if n.Runs() {
		u.Processors, u.Memory, u.Pids = host.UsedCPUs(before, now), now.Memory, now.Pids
	}
	if l, ok := h.Engines[n.Engine].(engine.Layered); ok {
		if size, err := volume.SizeOf(ctx, l.Private(engine.RefOf(&n.Node))); err == nil {
			u.Disk, u.Partial = size.Disk, size.Partial
		}
	}
	of := volume.SizeOfOwn(ctx, h.Dirs, n)
	u.Volumes, u.Partial = of.Disk, u.Partial || of.Partial
	return u
}
