package check

import (
	"net/netip"
)

// maxIPv6Addresses is the maximum number of IPv6 addresses that a node may declare on a network.
const maxIPv6Addresses = 8

// checkIPv6 checks the IPv6 addresses that nodes declare. No two nodes of a network may have the
// same address.
func checkIPv6(ix *index, found *findings) {
	type holder struct{ network, address string }
	taken := map[holder]string{}
	for n := range each(ix.Nodes) {
		for _, nic := range n.NICs {
			kind, known := ix.kindByName[nic.Network]
			if len(nic.IPv6) == 0 || !known {
				continue
			}
			key := atNode(n, "ipv6", nic.Network)
			if !kind.Bridged {
				found.report(key, "remove it", "%s network %s cannot check the IPv6 addresses of node %s",
					kind.Name, nic.Network, n.Name)
				continue
			}
			if len(nic.IPv6) > maxIPv6Addresses {
				found.report(key, "or set spoof = true on the network to allow any",
					"node %s has %d IPv6 addresses on network %s; the maximum is %d", n.Name, len(nic.IPv6),
					nic.Network,
					maxIPv6Addresses)
			}
			for _, a := range nic.IPv6 {
				if !unicast6(a) {
					found.report(key, `such as "2001:db8::11" or "fe80::5054:ff:fe12:3456"`,
						"%s is not an IPv6 unicast address", a)
					continue
				}
				h := holder{nic.Network, a.String()}
				if other, ok := taken[h]; ok {
					found.reportConflict(key, at("node", other, "ipv6", nic.Network), "give each its own",
						"address %s of node %s on network %s is already used by node %s", a, n.Name, nic.Network, other)
				}
				taken[h] = n.Name
			}
		}
	}
}

// unicast6 reports whether an address can belong to one node.
func unicast6(a netip.Addr) bool {
	return a.Is6() && !a.Is4In6() && a.Zone() == "" && !a.IsUnspecified() && !a.IsLoopback() && !a.IsMulticast()
}
