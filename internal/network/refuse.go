package network

import (
	"net/netip"

	"github.com/vishvananda/netlink"

	"orrery/internal/network/ends"
	"orrery/internal/problem"
	"orrery/internal/site"
	"orrery/internal/site/spec"
)

// refuse says why a network must not be made on this host: its bridge's name is taken, or its subnet leads elsewhere.
// Networks of the same site are left out: the site has been checked, and two of them may be about to change places.
//
// Where the host has no address it has no route either, and such a network may have any addresses: those of production, if it
// is a twin's or a quarantine.
func refuse(n spec.Network, all []bridge) error {
	if err := refuseName(n); err != nil {
		return err
	}
	if n.Kind == spec.VethPair {
		return refuseVethPair(n)
	}
	if err := refuseKind(n, all); err != nil {
		return err
	}
	if err := refuseUsers(n, all); err != nil || hostAddress(n) == "" {
		return err
	}
	subnet := netip.MustParsePrefix(n.Subnet)
	own := map[int]bool{}
	for _, b := range all {
		own[b.link.Attrs().Index] = true
		if b.mark.Site == n.Site || hostAddress(b.mark) == "" || b.mark.Kind == spec.VethPair {
			continue
		}
		if other, err := netip.ParsePrefix(b.mark.Subnet); err == nil && other.Overlaps(subnet) {
			return overlap(n, "network "+b.mark.Name+" of site "+b.mark.Site, other).
				Try("give one of them another subnet, or take site %s down first", b.mark.Site)
		}
	}
	links, err := ends.Whole(netlink.LinkList)
	if err != nil {
		return failed(n, "list the host's links", err)
	}
	for _, link := range links { // of nodes on routed networks, whose subnets have been compared
		if site.IsRouted(link.Attrs().Name) {
			own[link.Attrs().Index] = true
		}
	}
	if err := refuseAddresses(n, subnet, own); err != nil {
		return err
	}
	return refuseRoutes(n, subnet, own)
}

func refuseName(n spec.Network) error {
	link, err := netlink.LinkByName(n.Bridge)
	if ends.Missing(err) {
		return nil
	}
	if err != nil {
		return failed(n, "look at "+n.Bridge, err)
	}
	if b, ok := ours(link); ok && (!b.marked || b.mark.Site == n.Site && b.mark.Name == n.Name) {
		return nil
	}
	return problem.New(problem.Unable, "network %s: the host has an interface %s that is not Orrery's", n.Name, n.Bridge).
		Try("rename it or remove it: ip link delete %s", n.Bridge)
}

func refuseAddresses(n spec.Network, subnet netip.Prefix, own map[int]bool) error {
	addresses, err := ends.Whole(func() ([]netlink.Addr, error) { return netlink.AddrList(nil, netlink.FAMILY_V4) })
	if err != nil {
		return failed(n, "list the host's addresses", err)
	}
	for _, a := range addresses {
		other, err := netip.ParsePrefix(a.IPNet.String())
		if err != nil || own[a.LinkIndex] || !other.Overlaps(subnet) {
			continue
		}
		return overlap(n, "the host's interface "+ends.NameOf(a.LinkIndex), other).
			Try("give the network a subnet that the host is not on")
	}
	return nil
}

func refuseRoutes(n spec.Network, subnet netip.Prefix, own map[int]bool) error {
	routes, err := hostRoutes()
	if err != nil {
		return failed(n, "list the host's routes", err)
	}
	for _, r := range routes {
		if own[r.link] || !r.to.Overlaps(subnet) {
			continue
		}
		return overlap(n, "a route of the host by "+ends.NameOf(r.link), r.to).
			Try("give the network another subnet, or remove the route")
	}
	return nil
}

func overlap(n spec.Network, what string, other netip.Prefix) *problem.Problem {
	return problem.New(problem.Unable, "network %s: subnet %s overlaps %s, %s", n.Name, n.Subnet, other, what)
}
