package plan

import (
	"fmt"
	"slices"

	"orrery/internal/observe"
	"orrery/internal/site"
	"orrery/internal/site/spec"
)

// networks plans the networks that nodes are on, and gives the steps by network.
func (d *draft) networks(h *observe.Host, nodes []*site.Node, ready []int) map[string]int {
	steps := map[string]int{}
	used := map[string]bool{}
	for _, n := range nodes {
		for _, nic := range n.NICs {
			used[nic.Network] = true
		}
	}
	for _, wanted := range d.maker.Networks() {
		if !used[wanted.Name] {
			continue
		}
		s := Step{
			Kind: MakeNetwork, Host: h.Name, Subject: wanted.Name, Reason: "new", Needs: ready,
			Network: &wanted, Undo: "remove network " + wanted.Name,
		}
		if i := slices.IndexFunc(h.Networks, func(n spec.Network) bool { return n.Name == wanted.Name }); i >= 0 {
			was := &h.Networks[i]
			if *was == wanted {
				continue
			}
			s.WasNetwork, s.Reason, s.Undo = was, networkDifference(*was, wanted), "make network "+wanted.Name+" as it was"
			s.Disturbs = cutOff(h, was, &wanted)
		}
		steps[wanted.Name] = d.add(s)
		d.frees[claim{h.Name, "network " + wanted.Name}] = steps[wanted.Name]
	}
	for _, step := range steps { // an address of the host can be on one network only
		for i := range h.Networks {
			if was := &h.Networks[i]; was.Name != d.Steps[step].Subject && overlap(was, d.Steps[step].Network) {
				d.claims(step, claim{h.Name, "network " + was.Name})
			}
		}
	}
	return steps
}

// cutOff gives the running nodes that do not reach their gateway for a while when a network changes.
func cutOff(h *observe.Host, was, is *spec.Network) []string {
	if was.Gateway == is.Gateway {
		return nil
	}
	var names []string
	for i := range h.Nodes {
		n := &h.Nodes[i]
		if n.State == observe.Running && slices.ContainsFunc(n.NICs, func(nic spec.NIC) bool { return nic.Network == was.Name }) {
			names = append(names, n.Name)
		}
	}
	return names
}

func networkDifference(was, is spec.Network) string {
	return spec.Differences(networkParts(was), networkParts(is))
}

func networkParts(n spec.Network) spec.Parts {
	return spec.Parts{
		"subnet": n.Subnet, "gateway": n.Gateway, "nat": fmt.Sprint(n.NAT), "mtu": fmt.Sprint(n.MTU), "bridge": n.Bridge, "outlet": fmt.Sprint(n.Outlet),
	}
}
