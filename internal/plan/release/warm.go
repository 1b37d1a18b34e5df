package release

import (
	"slices"

	"orrery/internal/plan"
	"orrery/internal/plan/stand"
	"orrery/internal/site"
	"orrery/internal/site/spec"
)

// prepareRunning plans the steps before the links move, if no node is stopped.
func (d *switchPlanner) prepareRunning(p *hostPart) {
	p.ground = slices.Concat(p.networks, d.proofs)
	for _, m := range p.changing {
		d.takeVolumes(m)
		p.ground = append(p.ground, m.steps()...)
		p.moves = append(p.moves, m.moves()...)
	}
}

// startStaged plans to start a stopped instance in quarantine, before anything is disturbed.
func (d *switchPlanner) startStaged(m *member, networks []int) {
	if d.goal.Recover || m.to.Runs() || !m.isStaged() {
		return
	}
	m.wake = add(d.Plan, plan.Step{
		Kind: plan.StartNode, Host: m.host.Name, Subject: m.name,
		Reason: "release " + site.ReleaseName(m.to.Release) + " is not running", Node: &m.to.Node, Old: &m.to.Node,
		Needs: networks, Undo: "stop",
	})
	d.proofs = append(d.proofs, m.wake)
}

// retire plans that live instances stop what must not run twice and release their volumes.
func (d *switchPlanner) retire(m *member) {
	for _, old := range m.olds {
		if !old.Runs() {
			cold := stand.AsRetired(old.Node)
			m.retire = append(m.retire, add(d.Plan, plan.Step{
				Kind: plan.ReshapeNode, Host: m.host.Name, Subject: m.name,
				Reason: "release " + site.ReleaseName(old.Release) + " is no longer live",
				Node:   &cold, Old: &old.Node, Needs: d.proofs, Undo: "restore the previous interfaces and mounts",
			}))
			continue
		}
		if !isActive(old) && !old.HoldsExclusive() && !d.goal.doesLiveOnlyWork(old) {
			continue
		}
		retired := old.Node
		if fixedVolumesReason(m.host, old) == "" { // otherwise it releases its volumes while it is stopped
			retired = withVolumesOf(old.Node, stand.AsRetired(old.Node))
		}
		needs := slices.Clone(d.proofs)
		for _, other := range d.order {
			if slices.Contains(other.peers, m) {
				needs = append(needs, other.retire...)
			}
		}
		m.retire = append(m.retire, add(d.Plan, plan.Step{
			Kind: plan.RetireNode, Host: m.host.Name, Subject: m.name,
			Reason: "release " + site.ReleaseName(old.Release) + " releases its exclusive volumes and live-only services",
			Node:   &retired, Old: &old.Node, Needs: needs, Disturbs: []string{m.name}, Undo: "activate",
		}))
	}
}

// takeVolumes plans that an instance uses its volumes instead of their copies.
func (d *switchPlanner) takeVolumes(m *member) {
	needs := slices.Clone(d.proofs)
	for _, other := range d.order { // all of the set may share a volume
		needs = append(needs, other.retire...)
	}
	s := plan.Step{
		Host: m.host.Name, Subject: m.name, Reason: "release " + site.ReleaseName(m.to.Release) + " uses its volumes",
		Old: &m.to.Node, Needs: needs,
	}
	switch {
	case !m.runs():
		cold := m.live
		s.Kind, s.Node, s.Undo = plan.ReshapeNode, &cold, "restore the previous interfaces and mounts"
	case slices.Equal(m.to.Mounts, m.live.Mounts):
		return
	default:
		with := withVolumesOf(m.to.Node, m.live)
		s.Kind, s.Node, s.Undo = plan.TakeVolumes, &with, "replace them by copies"
	}
	m.ready = add(d.Plan, s)
}

// activate plans that an instance starts its live-only work and is healthy afterwards.
func (d *switchPlanner) activate(m *member, moved []int) {
	live := m.live
	needs := slices.Clone(moved)
	for _, peer := range m.peers {
		needs = append(needs, peer.done...)
	}
	slices.Sort(needs)
	needs = slices.Compact(needs)
	if d.goal.wasInterrupted(m) {
		live.Config.Active = spec.ActiveParts(m.site.RolesOf(m.node)) // which it may never have done
		needs = []int{add(d.Plan, plan.Step{
			Kind: plan.ConfigureNode, Host: m.host.Name, Subject: m.name, Reason: "not finished earlier",
			Node: &live, Old: &live, Needs: needs, Disturbs: []string{m.name},
		})}
	} else if live.Exclusive() || hasLiveOnlyWork(m.site, m.node) {
		needs = []int{add(d.Plan, plan.Step{
			Kind: plan.ActivateNode, Host: m.host.Name, Subject: m.name,
			Reason: "release " + site.ReleaseName(live.Release) + " is live",
			Node:   &live, Old: &live, Needs: needs, Disturbs: []string{m.name}, Undo: "retire",
		})}
	}
	m.done = needs
	if live.Config.Health != "" {
		m.done = []int{add(d.Plan, plan.Step{
			Kind: plan.CheckNode, Host: m.host.Name, Subject: m.name, Reason: "check health", Node: &live, Old: &live,
			Needs: needs,
		})}
	}
}
