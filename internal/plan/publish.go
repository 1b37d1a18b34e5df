package plan

import (
	"slices"

	"orrery/internal/observe"
	"orrery/internal/plan/clash"
	"orrery/internal/site"
	"orrery/internal/site/spec"
)

// Ports of a host that lead to nodes belong to the network on which the nodes are reached. They lead
// to addresses, and these are the same in all releases: when a switch moves the links, the ports
// lead to the new live node in the same moment.

// withPublished returns a network as a host has it, with the ports of the host that lead to its
// nodes there, and the active services. Nodes that are not selected keep the ports that they have.
func (d *networkPlanner) withPublished(h *observe.Host, n spec.Network) spec.Network {
	if d.site.Stage != 0 {
		return n
	}
	all := publishedNow(h, &n, func(node string) bool { return d.goal.selects(node) && !d.stuck[node] })
	for i := range d.site.Nodes {
		node := &d.site.Nodes[i]
		if node.Host != h.Name || len(node.Publish) == 0 || !d.goal.selects(node.Name) || d.stuck[node.Name] {
			continue
		}
		if on, ports := d.makerOf(node).Published(node); on == n.Name {
			all = append(all, ports...)
		}
	}
	n.Publish, n.Answers = spec.FormatPublished(all), spec.AnswersOn(d.site, h.Name, n.Name)
	return n
}

// publishedNow returns the ports that a host has published on a network, except those of some nodes.
func publishedNow(h *observe.Host, n *spec.Network, except func(node string) bool) []spec.Published {
	if old, exists := h.Network(n.Site, n.Name); exists {
		return old.PublishedExcept(except)
	}
	return nil
}

// publishesStray reports whether ports of a host lead to selected nodes that do not belong there.
func (d *networkPlanner) publishesStray(h *observe.Host, n *spec.Network) bool {
	return slices.ContainsFunc(n.AllPublished(), func(p spec.Published) bool {
		return d.goal.selects(p.Node) && !d.stuck[p.Node] && d.Homes[p.Node] != h.Name
	})
}

// checkPublished notes why a host cannot have the ports that a network publishes there.
func (d *networkPlanner) checkPublished(h *observe.Host, n *spec.Network) {
	mine := n.AllPublished()
	for _, step := range d.Steps {
		if step.Kind != MakeNetwork || step.Host != h.Name || step.Network.Name == n.Name {
			continue
		}
		if p := clash.PublishedTwice(h, mine, step.Network.AllPublished()); p != nil {
			d.refused = append(d.refused, p)
		}
	}
	if p := clash.PublishedTwice(h, mine, mine); p != nil {
		d.refused = append(d.refused, p)
	}
	for i := range h.Networks { // of nodes that are not selected
		old := &h.Networks[i].Network
		if d.goal.Nodes == nil || old.Name == n.Name {
			continue
		}
		if p := clash.PublishedTwice(h, mine, old.PublishedExcept(d.goal.selects)); p != nil {
			d.refused = append(d.refused, p)
		}
	}
}

// unpublish plans that ports of a host no longer lead to nodes that are removed, when their networks
// stay.
func unpublish(d *planBuilder, h *observe.Host, needs []int) {
	for i := range h.Networks {
		old := &h.Networks[i].Network
		left := *old
		left.Publish = spec.FormatPublished(old.PublishedExcept(d.goal.selects))
		if old.Publish == left.Publish || site.IsQuarantine(d.maker.Key(), old.Site) {
			continue
		}
		d.add(Step{
			Kind: MakeNetwork, Host: h.Name, Subject: old.Name,
			Reason: networkDifference(&observe.Network{Network: *old}, &left), Needs: needs,
			Network: &left, OldNetwork: old, Undo: "restore network " + old.Name,
		})
	}
}
