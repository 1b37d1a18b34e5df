package release

import (
	"slices"

	"orrery/internal/observe"
	"orrery/internal/plan"
	"orrery/internal/site/spec"
)

// publishedBefore returns the ports that a host has published on a network before the switch.
func publishedBefore(h *observe.Host, n *spec.Network) string {
	if old, exists := h.Network(n.Site, n.Name); exists {
		return old.Publish
	}
	return ""
}

// publish plans that the ports of a host lead to nodes as their new releases declare it. Ports that
// both releases declare need no step: they lead to an address, and that moves with the links. The
// others change at once, after the links have moved.
func (d *switchPlanner) publish(p *hostPart, needs []int) {
	ports := map[string][]spec.Published{} // by network
	for _, m := range p.set {
		if network, all := spec.NewBuilder(m.site).Published(m.node); network != "" {
			ports[network] = append(ports[network], all...)
		}
	}
	concerned := func(node string) bool {
		return slices.ContainsFunc(p.set, func(m *member) bool { return m.name == node })
	}
	maker := spec.NewBuilder(d.spans.site)
	maker.MTUs = d.spans.live.MTUs()
	for _, wanted := range maker.Networks() {
		if wanted.Kind == spec.VethPair {
			continue
		}
		old, exists := d.networkThen(p.host, d.spans.live.On(p.host.Name, wanted))
		if !exists {
			continue
		}
		changed := old
		changed.Publish = spec.FormatPublished(append(old.PublishedExcept(concerned), ports[old.Name]...))
		if changed.Publish == old.Publish {
			continue
		}
		d.published = append(d.published, add(d.Plan, plan.Step{
			Kind: plan.MakeNetwork, Host: p.host.Name, Subject: old.Name, Reason: "ports of the release that goes live",
			Needs: needs, Network: &changed, OldNetwork: &old, Undo: "restore network " + old.Name,
		}))
	}
}

// networkThen returns a live network as it is on a host when the links have moved, or false if it is
// not there.
func (d *switchPlanner) networkThen(h *observe.Host, wanted spec.Network) (spec.Network, bool) {
	for _, s := range d.Steps {
		if s.Kind == plan.MakeNetwork && s.Host == h.Name && s.Network.Site == wanted.Site && s.Subject == wanted.Name {
			return *s.Network, true
		}
	}
	if old, exists := h.Network(wanted.Site, wanted.Name); exists {
		return old.Network, true
	}
	return spec.Network{}, false
}
