package sitefile

import (
	"net/netip"
	"slices"
	"strings"
)

// isAddressKey reports whether a key sets an address, gateway or netmask.
func isAddressKey(key string) bool {
	for _, kind := range []string{"ip", "gateway", "netmask"} {
		if _, ok := suffixOf(key, kind); ok {
			return true
		}
	}
	return false
}

// suffixOf reports whether a key is of a kind, as "ip" and "ip_data" are of kind "ip". It also
// returns the suffix.
func suffixOf(key, kind string) (string, bool) {
	rest, ok := strings.CutPrefix(key, kind)
	if !ok || rest != "" && !strings.ContainsAny(rest[:1], "_-./0123456789") {
		return "", false
	}
	return strings.Trim(rest, "_-./"), true
}

// addressKey returns the key of a kind, such as "netmask", for the addresses with one suffix:
// netmask_data or netmask-data for ip_data. It returns "" if the section has no such key.
func (n *iniNode) addressKey(kind, suffix string) string {
	if n.places == nil {
		n.places = map[[2]string]string{}
		for _, key := range slices.Backward(n.order) { // the first of several wins
			for _, kind := range []string{"netmask", "gateway"} {
				if of, ok := suffixOf(key, kind); ok {
					n.places[[2]string{kind, of}] = key
				}
			}
		}
	}
	return n.places[[2]string{kind, suffix}]
}

// noteStrayKeys records gateways and netmasks that belong to no network of their section. It ignores
// the values of [DEFAULT], which need not apply to all networks.
func (m *iniImport) noteStrayKeys(all []iniAddress) {
	type place struct {
		of      *iniNode
		suffix  string
		network *iniNetwork
		bits    int
	}
	known := map[place]bool{}
	for _, a := range all {
		network := m.networkOf(a.address)
		for _, suffix := range []string{"", a.suffix} {
			known[place{of: a.node, suffix: suffix, network: network}] = true
			known[place{of: a.node, suffix: suffix, bits: network.subnet.Bits()}] = true
		}
	}
	for _, n := range m.sections {
		for _, key := range n.order {
			if n.isHost || n.keys[key] == "" || m.lines[n.section+"\x00"+key] == 0 {
				continue
			}
			if suffix, ok := suffixOf(key, "gateway"); ok &&
				!known[place{of: n, suffix: suffix, network: m.networkOfGateway(n.keys[key])}] {
				m.noteLostKey(n, key, "no network of this section can have this gateway")
			}
			if suffix, ok := suffixOf(key, "netmask"); ok {
				if bits, _ := prefixLength(n.keys[key]); !known[place{of: n, suffix: suffix, bits: bits}] {
					m.noteLostKey(n, key, "no network of this section has this netmask")
				}
			}
		}
	}
}

// networkOfGateway returns the network to which a gateway can belong, or nil.
func (m *iniImport) networkOfGateway(gateway string) *iniNetwork {
	g, err := netip.ParseAddr(gateway)
	if err != nil {
		return nil
	}
	if n := m.networkOf(g); n != nil && n.canHaveGateway(g) {
		return n
	}
	return nil
}
