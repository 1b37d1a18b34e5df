package release

import (
	"maps"
	"slices"

	"orrery/internal/observe"
	"orrery/internal/plan"
	"orrery/internal/plan/stand"
	"orrery/internal/site/spec"
)

// A hostNetworks is the networks of one host to which links are moved.
type hostNetworks struct {
	*plan.Plan
	spans *spans
	host  *observe.Host
	steps []int // steps that make the networks
}

// networks plans the networks that a set needs.
func (w *hostNetworks) networks(set []*member) error {
	live, apart := map[string]bool{}, map[int]map[string]bool{} // network names: live, and by release
	use := func(n spec.Node) {
		names := live
		if n.Staged {
			if apart[n.Release] == nil {
				apart[n.Release] = map[string]bool{}
			}
			names = apart[n.Release]
		}
		for _, nic := range n.NICs {
			names[nic.Network] = true
		}
	}
	for _, m := range set {
		use(m.live)
		if !m.to.Runs() {
			use(m.to.Node)
		}
		for _, old := range m.olds {
			use(stand.AsRetired(old.Node))
		}
	}
	stands := func(on *spec.Network) bool {
		return slices.ContainsFunc(set, func(m *member) bool {
			return slices.ContainsFunc(m.live.NICs, func(nic spec.NIC) bool { return on.HasEnd(nic.Parent) })
		})
	}
	maker := spec.NewBuilder(w.spans.site)
	maker.MTUs = w.spans.live.MTUs()
	for _, n := range maker.Networks() { // veth pairs come first
		if live[n.Name] || stands(&n) {
			n = w.spans.live.On(w.host.Name, n)
			n.Publish = publishedBefore(w.host, &n) // ports change when the links have moved
			n.Answers = spec.AnswersOn(w.spans.site, w.host.Name, n.Name)
			w.network(n)
		}
		for _, release := range slices.Sorted(maps.Keys(apart)) {
			if apart[release][n.Name] {
				joints, err := w.spans.quarantine(release)
				if err != nil {
					return err
				}
				w.network(joints.On(w.host.Name, n.Quarantined(release)))
			}
		}
	}
	return nil
}

// network adds the step that makes a network, unless the network is as desired.
func (w *hostNetworks) network(wanted spec.Network) {
	h := w.host
	s := plan.Step{
		Kind: plan.MakeNetwork, Host: h.Name, Subject: wanted.Name, Reason: "for " + wanted.Site, Network: &wanted,
		Undo: "remove network " + wanted.Name,
	}
	found, exists := h.Network(wanted.Site, wanted.Name)
	switch {
	case exists && plan.IsPassedThrough(h, found, &wanted):
		return
	case exists && len(found.Drift) == 0:
		old := &found.Network
		if wanted.VXLAN == old.VXLAN || len(w.spans.hosts) < 2 { // up makes all other changes
			return
		}
		updated := *old
		updated.VXLAN, updated.MTU = wanted.VXLAN, wanted.MTU
		s.Network, s.OldNetwork, s.Reason, s.Undo = &updated, old, "hosts or nodes on other hosts changed",
			"restore network "+wanted.Name
	case exists:
		s.OldNetwork, s.Undo = &wanted, "" // another program has damaged it, and undo leaves it repaired
	}
	for _, step := range w.steps {
		if w.Steps[step].Network.HasEnd(wanted.Parent) {
			s.Needs = append(s.Needs, step)
		}
	}
	w.steps = append(w.steps, add(w.Plan, s))
}
