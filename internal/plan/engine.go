package plan

import (
	"fmt"

	"orrery/internal/observe"
	"orrery/internal/phrase"
	"orrery/internal/problem"
	"orrery/internal/site"
)

// able wants that the engine of a node can run it on its host: what check cannot know.
func able(h *observe.Host, node, engine string) error {
	can, known := h.Engines[engine]
	switch {
	case h.Engines == nil: // nobody has asked
	case !known:
		return problem.New(problem.Unable, "node %s wants the engine %q, which host %s does not have", node, engine, h.Name).
			Try("write another engine, or put the node on another host")
	case can.Unable != observe.Lack{}:
		return problem.New(problem.Unable, "node %s cannot run on host %s: %s", node, h.Name, can.Unable.What).Try("%s", can.Unable.Cure)
	}
	return nil
}

// roomy wants that a host has the memory of a virtual machine, which gets all of it.
func roomy(n *site.Node, h *observe.Host) error {
	if n.Virtual() && h.Memory > 0 && n.Limits.Memory > h.Memory {
		return problem.New(problem.Mistake, "node %s is a virtual machine with %d MiB of memory, but host %s has %d MiB", n.Name, n.Limits.Memory>>20, h.Name, h.Memory>>20).
			At("site.toml").Try("lower its memory, or put it on another host")
	}
	return nil
}

// warn tells of nodes that run, but not as their user may think.
func (d *draft) warn(h *observe.Host, nodes []*site.Node) {
	var slow []string
	for _, n := range nodes {
		if h.Engines[n.Engine].Accel == observe.TCG {
			slow = append(slow, n.Name)
		}
	}
	if len(slow) > 0 {
		d.Warnings = append(d.Warnings, Emulated(h.Name, slow))
	}
	d.crowd(h, nodes)
}

// Emulated warns of virtual machines of a host whose processors are emulated.
func Emulated(host string, nodes []string) string {
	return fmt.Sprintf("on host %s virtual machines run in software emulation, many times as slow as containers: %s; `orrery doctor` says why", host, phrase.List(nodes, 8))
}
