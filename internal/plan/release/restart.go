package release

import (
	"maps"
	"slices"

	"orrery/internal/observe"
	"orrery/internal/plan"
	"orrery/internal/plan/stand"
	"orrery/internal/site"
	"orrery/internal/site/spec"
)

// restartReason returns why the set must be stopped and started, or "" if it need not be.
func restartReason(h *observe.Host, set []*member) string {
	networks := map[string]string{}
	for _, m := range set {
		for _, n := range append([]*observe.Node{m.to}, m.olds...) {
			if !h.Engines[n.Engine].MoveNIC {
				return "engine " + n.Engine + " cannot move the links of running nodes"
			}
			if why := fixedVolumesReason(h, n); why != "" && len(n.Mounts) > 0 {
				return why
			}
			for _, nic := range n.NICs {
				if !site.KindOf(nic.Kind).Bridged {
					networks[nic.Network] = nic.Kind
				}
			}
		}
	}
	if names := slices.Sorted(maps.Keys(networks)); len(names) > 0 {
		name := names[0]
		return "network " + name + " is " + networks[name] + ", and links can move only between bridges"
	}
	return ""
}

// fixedVolumesReason returns why the volumes of a node cannot be changed while it runs, or "" if they can.
func fixedVolumesReason(h *observe.Host, n *observe.Node) string {
	switch {
	case !h.Engines[n.Engine].Remount:
		return "engine " + n.Engine + " cannot change the volumes of running nodes"
	case n.VM.Disk != "": // its guest mounted them when it booted
		return "node " + n.Name + " writes to a disk (vm.disk): its volumes cannot be changed while it runs"
	}
	return ""
}

// planStops plans to stop nodes whose links cannot be moved while they run.
func (d *switchPlanner) planStops(p *hostPart) {
	p.why += ": stopped and started"
	var still []int
	for _, m := range slices.Backward(p.changing) {
		for _, old := range m.olds {
			retired := stand.AsRetired(old.Node)
			if old.Runs() {
				still = append(still, d.stopAndPlace(m, old, &retired, p.why))
			}
		}
		live := m.live
		still = append(still, d.stopAndPlace(m, m.to, &live, p.why))
	}
	p.ground = slices.Concat(p.networks, still)
}

// planStarts plans that the stopped nodes start again.
func (d *switchPlanner) planStarts(p *hostPart, ground, moved []int) {
	for _, m := range p.changing {
		live := m.live
		m.start = add(d.Plan, plan.Step{
			Kind: plan.StartNode, Host: p.host.Name, Subject: m.name, Reason: p.why, Node: &live, Old: &live,
			Needs: slices.Concat(ground, moved), Undo: "stop",
		})
	}
}

// stopAndPlace plans that an instance is stopped and put in its place. It returns the last step.
func (d *switchPlanner) stopAndPlace(m *member, n *observe.Node, shall *spec.Node, why string) int {
	needs := slices.Concat(d.proofs, m.retire)
	if n.Runs() || n == m.to && m.wake >= 0 {
		needs = []int{add(d.Plan, plan.Step{
			Kind: plan.StopNode, Host: m.host.Name, Subject: m.name, Reason: why, Disturbs: []string{m.name}, Old: &n.Node,
			Needs: needs, Undo: "start",
		})}
	}
	return add(d.Plan, plan.Step{
		Kind: plan.ReshapeNode, Host: m.host.Name, Subject: m.name, Reason: why, Node: shall, Old: &n.Node, Needs: needs,
		Undo: "restore the previous interfaces and mounts",
	})
}
