package place

import (
	"cmp"
	"maps"
	"slices"

	"orrery/internal/observe"
	"orrery/internal/problem"
	"orrery/internal/site"
)

// Able wants that the engine of a node can run it on its host: what check cannot know.
func Able(h *observe.Host, node, engine string) error {
	can, known := h.Engines[engine]
	switch {
	case h.Engines == nil: // nobody has asked
	case !known:
		return problem.New(problem.Unable, "node %s wants the engine %q, which host %s does not have", node, engine, h.Name).
			Try("write another engine, or put the node on another host")
	case can.Unable != observe.Lack{}:
		return problem.New(problem.Unable, "node %s cannot run on host %s: %s", node, h.Name, can.Unable.What).
			Try("%s", can.Unable.Cure)
	}
	return nil
}

// roomy wants that a host has the memory of a virtual machine, which gets all of it.
func roomy(n *site.Node, h *observe.Host) error {
	if n.Virtual() && h.Engines[n.Engine].Pool == nil && h.Memory > 0 && n.Limits.Memory > h.Memory {
		return problem.New(problem.Mistake, "node %s is a virtual machine with %d MiB of memory, but host %s has %d MiB",
			n.Name, n.Limits.Memory>>20, h.Name, h.Memory>>20).
			At("site.toml").Try("lower its memory, or put it on another host")
	}
	return nil
}

// pooled wants that a pool of memory, such as Xen has, is enough for all nodes of an engine. What
// those that run have already is theirs.
func pooled(h *observe.Host, nodes []*site.Node) error {
	for _, engine := range slices.Sorted(maps.Keys(h.Engines)) {
		pool := h.Engines[engine].Pool
		if pool == nil {
			continue
		}
		free, wants := pool.Free, int64(0)
		for _, n := range nodes {
			if current, ok := h.Node(n.Name); ok && current.Engine == engine && current.Runs() {
				free += cmp.Or(current.Limits.Memory, int64(site.DefaultVMMemory))
			}
		}
		for _, n := range nodes {
			if n.Engine != engine {
				continue
			}
			memory := cmp.Or(n.Limits.Memory, int64(site.DefaultVMMemory))
			if wants += memory; wants > free {
				return problem.New(problem.Unable,
					"there is no room for node %s, which is to have %d MiB: of the %d MiB that the engine %s has on host %s, %d are free; %d are needed",
					n.Name,
					memory>>20, pool.Total>>20, engine, h.Name, free>>20, wants>>20).
					Try("lower its memory, stop other guests, or give Dom0 less: xl mem-set 0, or dom0_mem= on Xen's command line")
			}
		}
	}
	return nil
}

// Fits wants that a host has what a node is to have of it: what check cannot know.
func Fits(key string, n *site.Node, h *observe.Host) error {
	return cmp.Or(Able(h, n.Name, n.Engine), roomy(n, h), pinned(n, h), equipped(key, n, h))
}

// FitTogether wants that what nodes share of a host is enough for all of them.
func FitTogether(nodes []*site.Node, h *observe.Host) error {
	return cmp.Or(paged(h, nodes), pooled(h, nodes))
}
