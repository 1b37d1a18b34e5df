package check

import (
	"fmt"
	"net/netip"

	"orrery/internal/site"
)

// invalidAddress returns what is wrong with an address on a network, or "".
func invalidAddress(n *site.Network, a netip.Addr) string {
	switch {
	case !n.Subnet.Contains(a):
		return fmt.Sprintf("is not in the subnet %s", n.Subnet)
	case a == n.Subnet.Addr():
		return fmt.Sprintf("is the network address of %s", n.Subnet)
	case a == site.Broadcast(n.Subnet):
		return fmt.Sprintf("is the broadcast address of %s", n.Subnet)
	}
	return ""
}

// A segment is a network with the addresses that nodes have taken.
type segment struct {
	*site.Network
	taken map[netip.Addr]*site.Node
	next  netip.Addr // start of the search for a free address
}

// free returns text that proposes a free address. Every call proposes a different one.
func (s *segment) free() string {
	for ; s.Subnet.Contains(s.next) && s.next != site.Broadcast(s.Subnet); s.next = s.next.Next() {
		if _, taken := s.taken[s.next]; !taken && s.next != s.Gateway {
			proposed := s.next
			s.next = s.next.Next()
			return fmt.Sprintf("%s is free", proposed)
		}
	}
	return fmt.Sprintf("%s is full: make the subnet wider", s.Subnet)
}

func checkAddresses(ix *index, found *findings) {
	segments := map[string]*segment{}
	for n := range each(ix.Networks) {
		segments[n.Name] = &segment{Network: n, taken: map[netip.Addr]*site.Node{}, next: n.Subnet.Addr().Next()}
	}
	for pass := range 2 { // first collect the addresses, then report problems and propose free ones
		for n := range each(ix.Nodes) {
			seen := map[string]bool{}
			for _, nic := range n.NICs {
				s, known := segments[nic.Network]
				switch {
				case pass == 1 && !known:
					found.reportUnknown(atNode(n, "net", nic.Network), "network", nic.Network,
						names(ix.Networks, func(n *site.Network) string { return n.Name }))
				case pass == 1 && seen[nic.Network]:
					found.report(at("defaults", "networks"), "name it once", "network %q is listed twice", nic.Network)
				case !known || site.SubnetCapacity(s.Subnet) == 0 || n.ID < minID:
				case pass == 0 && s.taken[nic.Address] == nil:
					s.taken[nic.Address] = n
				case pass == 1:
					checkAddress(found, n, nic, s)
				}
				seen[nic.Network] = true
			}
		}
	}
}

func checkAddress(found *findings, n *site.Node, nic site.NIC, s *segment) {
	wrong := invalidAddress(s.Network, nic.Address)
	if wrong == "" && s.taken[nic.Address] == n && nic.Address != s.Gateway {
		return // return early without formatting text, because nearly all addresses are correct
	}
	key := atNode(n, "net", nic.Network)
	what := fmt.Sprintf("address %s of node %s", nic.Address, n.Name)
	if other := s.taken[nic.Address]; other != n && nic.Address.IsValid() {
		found.reportConflict(key, atNode(other, "net", nic.Network), s.free(),
			"%s on network %s is already used by node %s", what, nic.Network, other.Name)
		return
	}
	switch {
	case !nic.Address.IsValid():
		found.report(key, s.free(), "node %s: no address is free on network %s, %s", n.Name, nic.Network, s.Subnet)
	case nic.Address == s.Gateway:
		found.report(key, s.free(), "%s is the gateway of network %s", what, nic.Network)
	case wrong != "":
		found.report(key, s.free(), "%s %s", what, wrong)
	}
}
