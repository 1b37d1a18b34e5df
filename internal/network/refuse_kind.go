package network

import (
	"net"

	"github.com/vishvananda/netlink"

	"orrery/internal/network/ends"
	"orrery/internal/plan/clash"
	"orrery/internal/problem"
	"orrery/internal/site"
	"orrery/internal/site/spec"
)

// refuseKind says why a network of another kind than a bridge must not be made: its interface cannot carry it, or others have that.
func refuseKind(n spec.Network, all []bridge) error {
	var marked []spec.Network
	for _, b := range all {
		if b.marked {
			marked = append(marked, b.mark)
		}
	}
	if p := clash.Kind(&n, marked); p != nil {
		return p
	}
	if n.Kind != site.Macvlan {
		return nil
	}
	parent, err := netlink.LinkByName(n.Parent)
	if ends.Missing(err) {
		return clash.Parent(&n)
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
