package network

import (
	"net"

	"github.com/vishvananda/netlink"

	"orrery/internal/network/ends"
	"orrery/internal/problem"
	"orrery/internal/site"
	"orrery/internal/site/spec"
)

// refuseKind says why a network of another kind than a bridge must not be made: its interface cannot carry it, or others have that.
func refuseKind(n spec.Network, all []bridge) error {
	for _, b := range all {
		if !b.marked || b.mark.Bridge == n.Bridge {
			continue
		}
		if n.Kind == site.Macvlan && b.mark.Kind == site.Macvlan && b.mark.Parent == n.Parent {
			return problem.New(problem.Unable, "network %s: interface %s is that of network %s of site %s already", n.Name, n.Parent, b.mark.Name, b.mark.Site).
				Try("give it another interface: two networks on one would be one")
		}
		if n.Kind == site.Routed && b.mark.Kind == site.Routed && routedPrefix(b.mark) == routedPrefix(n) {
			return problem.New(problem.Unable, "network %s: its links would be taken for those of network %s of site %s", n.Name, b.mark.Name, b.mark.Site).
				Try("give the network another name: a digest of this one happens to be the same")
		}
	}
	if n.Kind != site.Macvlan {
		return nil
	}
	parent, err := netlink.LinkByName(n.Parent)
	if ends.Missing(err) {
		return problem.New(problem.Unable, "network %s: the host has no interface %s", n.Name, n.Parent).Try("ip link lists those that it has")
	}
	if err != nil {
		return failed(n, "look at interface "+n.Parent, err)
	}
	return refuseParent(n, parent)
}

// refuseParent says why an interface cannot carry the macvlans of a network.
func refuseParent(n spec.Network, parent netlink.Link) error {
	attrs := parent.Attrs()
	switch {
	case ends.Own(attrs.Name) || attrs.Flags&net.FlagLoopback != 0 || parent.Type() == "macvlan":
		return problem.New(problem.Unable, "network %s: no macvlan can be on interface %s", n.Name, n.Parent).Try("choose a network card, a bond or a VLAN")
	case attrs.MasterIndex != 0:
		return problem.New(problem.Unable, "network %s: interface %s is part of %s", n.Name, n.Parent, ends.NameOf(attrs.MasterIndex)).
			Try("choose %s, or another interface", ends.NameOf(attrs.MasterIndex))
	case attrs.MTU < n.MTU:
		return problem.New(problem.Unable, "network %s: mtu %d is more than the %d of interface %s", n.Name, n.MTU, attrs.MTU, n.Parent).
			Try("give the network mtu = %d, or the interface more: ip link set %s mtu %d", attrs.MTU, n.Parent, n.MTU)
	case !isUp(parent) && !isVethEnd(parent):
		return problem.New(problem.Unable, "network %s: interface %s is down", n.Name, n.Parent).Try("ip link set %s up", n.Parent)
	}
	return nil
}

// refuseUsers says why the link of a network must not be replaced by one of another kind: nodes are on it.
func refuseUsers(n spec.Network, all []bridge) error {
	for _, b := range all {
		if b.link.Attrs().Name != n.Bridge || !b.marked || b.mark.Kind == n.Kind {
			continue
		}
		users := b.ports
		if b.mark.Kind == site.Routed {
			links, err := routedLinks(b.mark)
			if err != nil {
				return failed(n, "list the host's links", err)
			}
			users = len(links)
		}
		if users > 0 {
			return problem.New(problem.Unable, "network %s: it cannot become %s while nodes are on it", n.Name, kindName(n)).
				Try("stop the nodes that are on it")
		}
	}
	return nil
}
