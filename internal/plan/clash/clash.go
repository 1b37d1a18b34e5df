// Package clash finds what prevents a network on a host. That is a network of another site, or an
// interface or a route of the host. Plans check before anything is done. Package network checks
// again when it makes the network, because the host may have changed.
package clash

import (
	"net/netip"
	"slices"

	"orrery/internal/observe"
	"orrery/internal/problem"
	"orrery/internal/site"
	"orrery/internal/site/spec"
)

// CheckPlanned returns why a plan must not make a network on a host, or nil. ofSite are the networks
// that the plan wants.
func CheckPlanned(h *observe.Host, n *spec.Network, ofSite []spec.Network) *problem.Problem {
	p := checkPlanned(h, n, ofSite)
	if p == nil {
		return nil
	}
	p.What = "host " + h.Name + ": " + p.What
	return p.At("site.toml")
}

func checkPlanned(h *observe.Host, n *spec.Network, ofSite []spec.Network) *problem.Problem {
	present := func(name string) bool { return slices.Contains(h.Around.Interfaces, name) }
	if present(n.Bridge) {
		return NameTaken(n)
	}
	if n.Kind == spec.VethPair {
		for _, end := range n.Ends {
			if present(end) && !isVethPairEnd(h, end) {
				return EndTaken(n, end)
			}
		}
		return nil
	}
	if p := KindConflict(n, h.Around.Networks); p != nil {
		return p
	}
	if site.KindOf(n.Kind).OnInterface && !present(n.Parent) && len(h.Around.Interfaces) > 0 &&
		len(h.Around.Interfaces) < observe.MaxHostNetworking &&
		!willExist(h, n.Parent, ofSite) {
		return ParentMissing(n)
	}
	if p := SubnetOverlap(n, &h.Around); p != nil {
		return p
	}
	before := ""
	if o, exists := h.Network(n.Site, n.Name); exists {
		before = o.Publish
	}
	return PublishedTaken(n, before, &h.Around, h.Addresses)
}

// willExist reports whether a missing interface may exist once the network is made. It is, or will be,
// an end of a veth pair of the site, or a node has taken it and may be about to return it.
func willExist(h *observe.Host, name string, ofSite []spec.Network) bool {
	joins := func(n spec.Network) bool { return n.HasEnd(name) }
	return slices.ContainsFunc(ofSite, joins) || isVethPairEnd(h, name) ||
		slices.ContainsFunc(h.Nodes, func(n observe.Node) bool {
			return slices.ContainsFunc(n.NICs, func(nic spec.NIC) bool { return nic.Parent == name && n.TakesInterface(nic) })
		})
}

// isVethPairEnd reports whether a veth pair of the site on the host has an interface as an end. A node
// may have renamed or changed an end that it had. The code that makes the network checks that and
// can restore the end.
func isVethPairEnd(h *observe.Host, end string) bool {
	return slices.ContainsFunc(h.Networks, func(n observe.Network) bool { return n.HasEnd(end) })
}

// NameTaken returns the problem that the name of a network's bridge is taken.
func NameTaken(n *spec.Network) *problem.Problem {
	return problem.New(problem.Unable, "network %s: the host has an interface %s that is not Orrery's", n.Name,
		n.Bridge).
		Try("rename it or remove it: ip link delete %s", n.Bridge)
}

// EndTaken returns the problem that the name of an end of a veth pair is taken.
func EndTaken(n *spec.Network, end string) *problem.Problem {
	return problem.New(problem.Unable, "network %s: the host has an interface %s that is not Orrery's", n.Name,
		end).
		Try("give the end another name; ip link lists those in use")
}

// ParentMissing returns the problem that the interface of a macvlan network is missing.
func ParentMissing(n *spec.Network) *problem.Problem {
	return problem.New(problem.Unable, "network %s: the host has no interface %s", n.Name, n.Parent).
		Try("ip link lists its interfaces")
}

// KindConflict returns why a network cannot exist beside other networks of the host, whatever its subnet,
// or nil.
func KindConflict(n *spec.Network, others []spec.Network) *problem.Problem {
	for i := range others {
		o := &others[i]
		if o.Bridge == n.Bridge {
			continue
		}
		if site.KindOf(n.Kind).OnInterface && site.KindOf(o.Kind).OnInterface && o.Parent == n.Parent {
			return problem.New(problem.Unable, "network %s: interface %s is already used by network %s of site %s",
				n.Name, n.Parent, o.Name, o.Site).
				Try("give it another interface: two networks on the same one would be joined")
		}
		if site.KindOf(n.Kind).Routed && site.KindOf(o.Kind).Routed &&
			site.RoutedPrefix(o.Site, o.Name) == site.RoutedPrefix(n.Site, n.Name) {
			return problem.New(problem.Unable,
				"network %s: its links could not be distinguished from those of network %s of site %s",
				n.Name, o.Name, o.Site).Try("give the network another name: the digests of the names collide")
		}
	}
	return nil
}

// SubnetOverlap returns the problem that a network's subnet overlaps one of the host, or nil.
//
// If the host has no address on the network, it has no route either. Such a network may have any
// addresses, even those of production, as the networks of a twin or a quarantine do.
func SubnetOverlap(n *spec.Network, around *observe.HostNetworking) *problem.Problem {
	subnet, err := netip.ParsePrefix(n.Subnet)
	if err != nil || n.HostAddress() == "" {
		return nil // package check has checked the subnet
	}
	overlaps := func(text string) bool {
		other, err := netip.ParsePrefix(text)
		return err == nil && other.Overlaps(subnet)
	}
	overlap := func(what, other string) *problem.Problem {
		return problem.New(problem.Unable, "network %s: subnet %s overlaps %s, %s", n.Name, n.Subnet, other, what)
	}
	for i := range around.Networks {
		o := &around.Networks[i]
		if o.Site != n.Site && o.HostAddress() != "" && o.Kind != spec.VethPair && overlaps(o.Subnet) {
			return overlap("network "+o.Name+" of site "+o.Site, o.Subnet).
				Try("give one of them another subnet, or take site %s down first, under that name if the site was renamed", o.Site)
		}
	}
	for _, l := range around.Leads {
		switch {
		case !overlaps(l.To):
		case l.Route:
			return overlap("a route of the host through "+l.Link, l.To).
				Try("give the network another subnet, or remove the route")
		default:
			return overlap("the host's interface "+l.Link, l.To).Try("give the network a subnet that the host is not on")
		}
	}
	return nil
}
