package sitefile

import (
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"

	"orrery/internal/problem"
	"orrery/internal/site"
)

// An iniNetwork is a subnet with an address of at least one section.
type iniNetwork struct {
	name    string
	subnet  netip.Prefix
	gateway netip.Addr
	guessed bool       // the database has no netmask
	next    netip.Addr // first address that may be free
}

type iniNIC struct {
	network *iniNetwork
	address netip.Addr
}

// An iniAddress is an address in a section. The suffix of its key names the network, as in ip_data.
type iniAddress struct {
	node    *iniNode
	key     string
	suffix  string
	prefix  netip.Prefix
	address netip.Addr
	guessed bool
}

// networksOf derives the networks from addresses, netmasks and gateways.
func (m *iniImport) networksOf() {
	var all []iniAddress
	for _, n := range m.sections {
		if !n.isHost {
			all = append(all, m.addressesOf(n)...)
		}
	}
	m.subnets(all)
	taken := map[netip.Addr]string{} // by user
	for _, n := range m.networks {
		taken[n.subnet.Addr()], taken[site.Broadcast(n.subnet)] = "the network address", "broadcasts"
		taken[n.gateway] = "the gateway of network " + n.name
	}
	for _, a := range all {
		n := a.node
		network := m.networkOf(a.address)
		if slices.ContainsFunc(n.nics, func(nic iniNIC) bool { return nic.network == network }) {
			m.noteLostKey(n, a.key, "a node has only one address on a network")
			continue
		}
		if by := taken[a.address]; by != "" {
			former := a.address
			if a.address = network.free(taken); !a.address.IsValid() {
				m.noteLostKey(n, a.key, fmt.Sprintf("%s is used by %s, and no other is free", former, by))
				continue
			}
			m.noteLostKey(n, a.key, fmt.Sprintf("%s is used by %s; the node gets %s", former, by, a.address))
		}
		taken[a.address] = fmt.Sprintf("[%s] in line %d", oneLine(n.section), m.lineOf(n, a.key))
		n.nics = append(n.nics, iniNIC{network, a.address})
	}
}

// free returns the first address that is not taken, or the zero Addr if there is none.
func (n *iniNetwork) free(taken map[netip.Addr]string) netip.Addr {
	if !n.next.IsValid() {
		n.next = n.subnet.Addr()
	}
	for ; n.subnet.Contains(n.next); n.next = n.next.Next() {
		if taken[n.next] == "" {
			return n.next
		}
	}
	return netip.Addr{}
}

func (m *iniImport) addressesOf(n *iniNode) []iniAddress {
	var all []iniAddress
	for _, key := range n.order {
		suffix, isIP := suffixOf(key, "ip")
		if !isIP {
			continue
		}
		for _, text := range words(n.keys[key]) {
			a := iniAddress{node: n, key: key, suffix: suffix}
			var err error
			if a.prefix, err = netip.ParsePrefix(text); err == nil {
				a.address = a.prefix.Addr()
			} else if a.address, err = netip.ParseAddr(text); err == nil && a.address.Is4() {
				bits, given := maskOf(n, suffix)
				a.prefix, a.guessed = netip.PrefixFrom(a.address, bits), !given
			}
			if err != nil || !a.address.Is4() || site.SubnetCapacity(a.prefix) == 0 {
				m.noteLostKey(n, key, fmt.Sprintf("%q is not an address of a node", oneLine(text)))
				continue
			}
			a.prefix = a.prefix.Masked()
			all = append(all, a)
		}
	}
	return all
}

// maskOf returns the prefix length in a section for addresses with a suffix. If the section has
// none, it returns 24 and false.
func maskOf(n *iniNode, suffix string) (bits int, given bool) {
	for _, key := range []string{n.addressKey("netmask", suffix), "netmask"} {
		if bits, ok := prefixLength(n.keys[key]); ok {
			return bits, true
		}
	}
	return 24, false
}

// prefixLength returns the prefix length of a netmask.
func prefixLength(mask string) (bits int, ok bool) {
	a, err := netip.ParseAddr(mask)
	if err != nil || !a.Is4() {
		return 0, false
	}
	bits, size := net.IPMask(a.AsSlice()).Size()
	return bits, size != 0
}

// masks rejects a section with an invalid netmask, because a guessed netmask would result in a
// different network.
func (m *iniImport) masks(n *iniNode) *problem.Problem {
	for _, key := range n.order {
		_, netmask := suffixOf(key, "netmask")
		if _, ok := prefixLength(n.keys[key]); netmask && !ok && n.keys[key] != "" {
			return mistake("[%s] %s: %q is not a netmask", oneLine(n.section), oneLine(key), oneLine(n.keys[key])).
				At(fmt.Sprintf("%s:%d", m.name, m.lineOf(n, key))).Try("write one such as 255.255.255.0")
		}
	}
	return nil
}

// subnets creates networks that do not overlap. A subnet inside a wider one becomes part of it.
func (m *iniImport) subnets(all []iniAddress) {
	widest := slices.Clone(all)
	slices.SortStableFunc(widest, func(a, b iniAddress) int { return a.prefix.Bits() - b.prefix.Bits() })
	for _, a := range widest {
		if m.networkOf(a.address) == nil {
			n := &iniNetwork{subnet: a.prefix}
			m.networks = append(m.networks, n)
			m.bySubnet[a.prefix], m.lengths[a.prefix.Bits()] = n, true
		}
	}
	taken := Names{}
	m.networks = m.inOrder(all)
	for _, a := range all { // the first address in the database determines the name
		n := m.networkOf(a.address)
		n.guessed = n.guessed || a.guessed && a.prefix == n.subnet
		if n.name == "" {
			name := a.suffix
			if strings.Trim(name, "0123456789") == "" {
				name = "lan" + name
			}
			n.name = ValidName(name, taken)
		}
		m.gateway(n, a)
	}
	m.noteStrayKeys(all)
}

// canHaveGateway reports whether address g can be the gateway of a network.
func (n *iniNetwork) canHaveGateway(g netip.Addr) bool {
	return n.subnet.Contains(g) && g != n.subnet.Addr() && g != site.Broadcast(n.subnet)
}

// inOrder returns the networks in the order of the database.
func (m *iniImport) inOrder(all []iniAddress) []*iniNetwork {
	var ordered []*iniNetwork
	known := map[*iniNetwork]bool{}
	for _, a := range all {
		if n := m.networkOf(a.address); !known[n] {
			known[n], ordered = true, append(ordered, n)
		}
	}
	return ordered
}

func (m *iniImport) gateway(n *iniNetwork, a iniAddress) {
	key := "gateway"
	if own := a.node.addressKey(key, a.suffix); a.node.keys[own] != "" {
		key = own
	}
	g, err := netip.ParseAddr(a.node.keys[key])
	legal := err == nil && n.canHaveGateway(g)
	switch {
	case legal && !n.gateway.IsValid():
		n.gateway = g
	case legal && g != n.gateway:
		m.noteLostKey(a.node, key, fmt.Sprintf("network %s already has the gateway %s", n.name, n.gateway))
	}
}

// networkOf returns the network that contains an address, or nil. Networks do not overlap.
func (m *iniImport) networkOf(a netip.Addr) *iniNetwork {
	for bits, used := range m.lengths {
		if !used {
			continue
		}
		if n := m.bySubnet[netip.PrefixFrom(a, bits).Masked()]; n != nil {
			return n
		}
	}
	return nil
}
