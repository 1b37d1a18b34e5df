package place

import (
	"cmp"
	"maps"
	"slices"

	"orrery/internal/observe"
	"orrery/internal/problem"
	"orrery/internal/site"
)

// CheckEngine returns an error if a node's engine cannot run it on a host. Package check cannot know this.
func CheckEngine(h *observe.Host, node, engine string) error {
	can, known := h.Engines[engine]
	switch {
	case h.Engines == nil: // the host was not asked
	case !known:
		return problem.New(problem.Unable, "node %s needs the engine %q, which host %s does not have", node, engine,
			h.Name).
			Try("write another engine, or put the node on another host")
	case can.Unable != observe.Missing{}:
		return problem.New(problem.Unable, "node %s cannot run on host %s: %s", node, h.Name, can.Unable.What).
			Try("%s", can.Unable.Cure)
	}
	return nil
}

// checkMemory returns an error if a virtual machine has more memory than its host. A machine gets all of
// its memory.
func checkMemory(n *site.Node, h *observe.Host) error {
	if n.Virtual() && h.Engines[n.Engine].Pool == nil && h.Memory > 0 && n.Limits.Memory > h.Memory {
		return problem.New(problem.Mistake, "node %s is a virtual machine with %d MiB of memory, but host %s has %d MiB",
			n.Name, n.Limits.Memory>>20, h.Name, h.Memory>>20).
			At("site.toml").Try("lower its memory, or put it on another host")
	}
	return nil
}

// checkMemoryPools returns an error if an engine's memory pool, as Xen has one, is too small for all nodes of
// the engine. The memory of running nodes counts as available to them.
func checkMemoryPools(h *observe.Host, nodes []*site.Node) error {
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
					"no room for node %s with %d MiB: of the %d MiB of the engine %s on host %s, %d are free; %d are needed",
					n.Name,
					memory>>20, pool.Total>>20, engine, h.Name, free>>20, wants>>20).
					Try("lower its memory, stop other guests, or give Dom0 less: xl mem-set 0, or dom0_mem= on Xen's command line")
			}
		}
	}
	return nil
}

// CheckFit returns an error if a host lacks a resource that a node needs. Package check cannot know
// this.
func CheckFit(s *site.Site, n *site.Node, h *observe.Host) error {
	return cmp.Or(CheckEngine(h, n.Name, n.Engine), checkMemory(n, h), checkPinning(n, h), checkHardware(s.Key(), n, h),
		checkRates(s, n, h))
}

// CheckFitTogether returns an error if a host has too little of what nodes share.
func CheckFitTogether(nodes []*site.Node, h *observe.Host) error {
	return cmp.Or(checkHugepages(h, nodes), checkMemoryPools(h, nodes))
}
