package plan

import (
	"net/netip"
	"strconv"

	"orrery/internal/observe"
	"orrery/internal/site/spec"
)

// A claim is something that only one node can have at a time: on a host, an id or an address on a
// network; on all hosts together, a node's name.
type claim struct{ host, what string }

func idClaim(host string, n *spec.Node) claim         { return claim{host, "id " + strconv.Itoa(n.ID)} }
func nameClaim(n *spec.Node) claim                    { return claim{"", "node " + n.Name} }
func attachmentClaim(host string, n *spec.Node) claim { return claim{host, "place of " + n.Name} }

func addressClaim(host string, nic spec.NIC) claim {
	return claim{host, "address " + nic.Network + " " + nic.Address.String()}
}

func interfaceClaim(host, name string) claim { return claim{host, "interface " + name} }
func networkClaim(host, name string) claim   { return claim{host, "network " + name} }

// freed maps each claim to the step that frees it.
type freed map[claim]int

// addNode records what a node frees when it stops.
func (f freed) addNode(h *observe.Host, n *spec.Node, step int) { f.addLinks(h, n, n.NICs, step) }

// addLinks records what a node frees when some of its interfaces are removed, and its place on their
// networks.
func (f freed) addLinks(h *observe.Host, n *spec.Node, nics []spec.NIC, step int) {
	f[attachmentClaim(h.Name, n)] = step
	for _, c := range linkClaims(h.Name, n, nics) {
		f[c] = step
	}
}

// addNetwork records what a network frees when it is removed.
func (f freed) addNetwork(h *observe.Host, n *spec.Network, step int) {
	f[networkClaim(h.Name, n.Name)] = step
	if n.Parent != "" {
		f[interfaceClaim(h.Name, n.Parent)] = step
	}
}

// orderByClaims makes steps wait for those that free what they claim. A node is created after one with its
// id is destroyed, and started after one with its address is stopped. A network is removed after
// the nodes on it are stopped.
func orderByClaims(d *planBuilder) {
	for n, s := range d.Steps {
		d.claim(n, claimsOf(s, d.hosts[s.Host])...)
	}
}

// claim makes a step wait for the steps that free what it claims.
func (d *planBuilder) claim(n int, all ...claim) {
	for _, c := range all {
		if step, ok := d.frees[c]; ok && step != n {
			d.Steps[n].Needs = append(d.Steps[n].Needs, step)
		}
	}
}

// claimsOf returns what a step claims on its host.
func claimsOf(s *Step, h *observe.Host) (all []claim) {
	switch s.Kind {
	case CreateNode:
		return []claim{idClaim(s.Host, s.Node), nameClaim(s.Node)}
	case StartNode:
		return linkClaims(s.Host, s.Node, s.Node.NICs)
	case LimitNode: // which may add an interface
		return linkClaims(s.Host, s.Node, spec.WithoutNICs(s.Node.NICs, s.Old.NICs))
	case MakeNetwork:
		if s.Network.Kind == spec.VethPair && s.OldNetwork == nil {
			all = attachmentClaims(h, s.Network)
		}
		if s.Network.Parent != "" {
			all = append(all, interfaceClaim(s.Host, s.Network.Parent))
		}
	case RemoveNetwork:
		all = attachmentClaims(h, s.Network)
		for _, other := range h.Networks { // networks on a veth pair are removed before the pair
			if s.Network.HasEnd(other.Parent) {
				all = append(all, networkClaim(s.Host, other.Name))
			}
		}
	}
	return all
}

// linkClaims returns what interfaces of a node claim.
func linkClaims(host string, n *spec.Node, nics []spec.NIC) []claim {
	all := make([]claim, 0, 2*len(nics))
	for _, nic := range nics {
		all = append(all, addressClaim(host, nic))
		if n.TakesInterface(nic) {
			all = append(all, interfaceClaim(host, nic.Parent))
		}
	}
	return all
}

// attachmentClaims returns the places of the nodes that were on a network. They must be stopped.
func attachmentClaims(h *observe.Host, on *spec.Network) (all []claim) {
	for i := range h.Nodes {
		if node := &h.Nodes[i].Node; isOn(node, on) {
			all = append(all, attachmentClaim(h.Name, node))
		}
	}
	return all
}

// overlap reports whether two networks have overlapping subnets or share an interface.
func overlap(a, b *spec.Network) bool {
	if a.Parent != "" && a.Parent == b.Parent || a.HasEnd(b.Ends[0]) || a.HasEnd(b.Ends[1]) {
		return true
	}
	x, err1 := netip.ParsePrefix(a.Subnet)
	y, err2 := netip.ParsePrefix(b.Subnet)
	return err1 == nil && err2 == nil && x.Overlaps(y)
}
