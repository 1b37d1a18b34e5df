// Package rehearsals simulates all hosts of a site on this machine. Users can try failures of hosts
// before they happen.
package rehearsals

import (
	"cmp"
	"net/netip"
	"slices"
	"strconv"

	"orrery/internal/host/reach"
	"orrery/internal/problem"
	"orrery/internal/rehearsal"
	"orrery/internal/site"
)

// Control is the name of a host that does not belong to the site and is its control host.
const Control = "control"

// defaultSubnet is the subnet of hosts whose site does not give numeric addresses. It is a network for
// benchmarks, which is not used elsewhere (RFC 2544).
var defaultSubnet = netip.MustParsePrefix("198.18.0.0/24")

// Places returns the hosts of a site at their addresses, and the number of the control host. That
// is the local host, or else an additional one.
func Places(s *site.Site) (all []rehearsal.Place, steering int, err error) {
	if len(s.Hosts) == 0 {
		return nil, 0, problem.New(problem.Usage, "the site declares no hosts to rehearse").
			At("site.toml").Try(`declare them: [host.sv1] address = "ops@10.8.1.1"`)
	}
	for i, h := range s.Hosts {
		p := rehearsal.Place{Name: h.Name}
		var numbers []netip.Addr
		if h.Local() {
			steering = i + 1
		} else {
			user, name, port := reach.ParseAddress(h.Address)
			p.Port, _ = strconv.Atoi(port) // already checked; "" becomes 0
			if p.User = user; user == "root" {
				p.User = ""
			}
			if a, err := netip.ParseAddr(name); err == nil {
				numbers = append(numbers, a)
			} else if name != h.Name {
				p.Aliases = append(p.Aliases, name)
			}
		}
		if h.Underlay.IsValid() && !slices.Contains(numbers, h.Underlay) {
			numbers = append(numbers, h.Underlay)
		}
		for _, a := range numbers {
			p.Addresses = append(p.Addresses, subnetOf(a))
		}
		all = append(all, p)
	}
	if steering == 0 {
		all = append(all, rehearsal.Place{Name: freeName(all, Control)})
		steering = len(all)
	}
	return all, steering, assignAddresses(all)
}

// subnetOf returns the subnet of a host's address.
func subnetOf(a netip.Addr) netip.Prefix { return netip.PrefixFrom(a, a.BitLen()-8) }

// freeName returns a name that no host has.
func freeName(all []rehearsal.Place, name string) string {
	for slices.ContainsFunc(all, func(p rehearsal.Place) bool { return p.Name == name }) {
		name += "-"
	}
	return name
}

// assignAddresses assigns addresses to hosts that have none, in the subnet of the first host that has one.
// It assigns the highest free addresses, because gateways of nodes usually have the lowest.
func assignAddresses(all []rehearsal.Place) error {
	subnet, taken := defaultSubnet, map[netip.Addr]bool{}
	for _, p := range slices.Backward(all) {
		for _, a := range p.Addresses {
			subnet, taken[a.Addr()] = cmp.Or(subnetOf(a.Addr()).Masked(), subnet), true
		}
	}
	last := subnet.Addr().AsSlice()
	next := byte(254)
	for i := range all {
		for len(all[i].Addresses) == 0 {
			last[len(last)-1] = next
			a, _ := netip.AddrFromSlice(last)
			if next--; next == 0 {
				return problem.New(problem.Unable, "the subnet %s has no addresses left for hosts", subnet).
					Try("give hosts numeric addresses")
			}
			if !taken[a] {
				all[i].Addresses = []netip.Prefix{netip.PrefixFrom(a, subnet.Bits())}
			}
		}
	}
	return nil
}
