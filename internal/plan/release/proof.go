package release

import (
	"slices"

	"orrery/internal/plan"
)

// planProofs plans health checks of instances in quarantine, before anything is disturbed. An instance
// that was started there is configured first. Each instance is checked after those that it needs.
func (d *switchPlanner) planProofs() {
	if d.goal.Recover {
		return
	}
	for _, m := range d.order {
		for _, peer := range m.peers {
			m.answers = append(m.answers, peer.answers...)
		}
		slices.Sort(m.answers)
		m.answers = slices.Compact(m.answers)
		if woken := m.wake >= 0; m.isStaged() && (woken || m.to.Runs()) {
			d.planProof(m, woken)
		}
	}
}

// planProof plans the health check of an instance that runs in quarantine, or will.
func (d *switchPlanner) planProof(m *member, woken bool) {
	s := plan.Step{
		Host: m.host.Name, Subject: m.name, Reason: "still healthy in quarantine",
		Node: &m.to.Node, Old: &m.to.Node, Needs: m.answers,
	}
	if woken {
		s.Needs = append(slices.Clone(s.Needs), m.wake)
		m.answers = s.Needs
		if d.goal.wasInterrupted(m) { // it is configured when it is live
			return
		}
		s.Kind, s.Reason = plan.ConfigureNode, "boot"
		m.answers = []int{add(d.Plan, s)}
		s.Reason, s.Needs = "healthy in quarantine", m.answers
		d.proofs = append(d.proofs, m.answers...)
	}
	if m.isProvenInQuarantine() && m.to.Config.Health != "" {
		s.Kind = plan.CheckNode
		m.answers = []int{add(d.Plan, s)}
		d.proofs = append(d.proofs, m.answers...)
	}
}
