package plan

import (
	"fmt"

	"orrery/internal/observe"
	"orrery/internal/phrase"
	"orrery/internal/problem"
	"orrery/internal/site"
)

// able wants that a node can run on its host: what check cannot know.
func able(n *site.Node, h *observe.Host) error {
	can, known := h.Engines[n.Engine]
	switch {
	case h.Engines == nil: // nobody has asked
	case !known:
		return problem.New(problem.Unable, "node %s wants the engine %q, which host %s does not have", n.Name, n.Engine, h.Name).
			Try("write another engine, or put the node on another host")
	case can.Unable != observe.Lack{}:
		return problem.New(problem.Unable, "node %s cannot run on host %s: %s", n.Name, h.Name, can.Unable.What).Try("%s", can.Unable.Cure)
	case n.Virtual() && h.Memory > 0 && n.Limits.Memory > h.Memory:
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
}

// Emulated warns of virtual machines of a host whose processors are emulated.
func Emulated(host string, nodes []string) string {
	return fmt.Sprintf("on host %s virtual machines run in software emulation, many times as slow as containers: %s; `orrery doctor` says why", host, phrase.List(nodes, 8))
}
