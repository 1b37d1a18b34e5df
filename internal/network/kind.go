package network

import (
	"fmt"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"orrery/internal/network/ends"
	"orrery/internal/problem"
	"orrery/internal/site"
	"orrery/internal/site/spec"
)

// Every network has one link on the host that carries its mark (site.BridgeName). What that is depends on the network's kind:
//
//	bridge     a bridge, on which the links of nodes are
//	routed     a bridge with nothing on it, for the gateway's address; the links of nodes stand by themselves and have a route each
//	macvlan    a macvlan of the host's own, beside those of the nodes
//	exclusive  a bridge with nothing on it, for the mark alone
//	vethpair   the same
//
// A bridge with nothing on it is what dummy(4) is elsewhere, and every host that has networks at all has bridges.

// isMacvlan reports whether the network's link is one on top of an interface of the host.
func isMacvlan(n spec.Network) bool { return n.Kind == site.Macvlan }

// linkType gives what netlink calls the link of a network.
func linkType(n spec.Network) string {
	if isMacvlan(n) {
		return "macvlan"
	}
	return "bridge"
}

// checkKind finds what would make no network of its kind, before anything is touched.
func checkKind(n spec.Network) error {
	switch n.Kind {
	case "", site.Routed, site.Exclusive:
	case site.Macvlan:
		if n.Parent == "" {
			return problem.New(problem.Unable, "network %s: it is on no interface of the host", n.Name)
		}
	default:
		return problem.New(problem.Unable, "network %s: kind %q is not known", n.Name, n.Kind)
	}
	if n.Router && !site.KindOf(n.Kind).Bridged {
		return problem.New(problem.Unable, "network %s: only a bridge has a router", n.Name)
	}
	if n.Kind == site.Routed && n.Gateway == "" {
		return problem.New(problem.Unable, "network %s: a routed network needs a gateway", n.Name)
	}
	return nil
}

// openLink gives the link of a network, marked; it makes it unless it is there. A new one is down. One of another kind is replaced:
// nobody is on it, as refuseUsers has seen to.
func openLink(n spec.Network) (netlink.Link, error) {
	link, err := netlink.LinkByName(n.Bridge)
	if err == nil && link.Type() != linkType(n) || isMacvlan(n) && err == nil && !isOn(link, n.Parent) {
		if err := netlink.LinkDel(link); err != nil {
			return nil, err
		}
		link, err = nil, netlink.LinkNotFoundError{}
	}
	if ends.Missing(err) {
		if err := netlink.LinkAdd(newLink(n)); err != nil {
			return nil, err
		}
		link, err = netlink.LinkByName(n.Bridge)
	}
	if err != nil {
		return nil, err
	}
	if link.Attrs().Alias != mark(n) {
		err = netlink.LinkSetAlias(link, mark(n))
	}
	return link, err
}

func newLink(n spec.Network) netlink.Link {
	attrs := netlink.NewLinkAttrs()
	attrs.Name, attrs.HardwareAddr = n.Bridge, bridgeMAC(n.Bridge)
	if isMacvlan(n) {
		attrs.MTU = n.MTU
		if parent, err := netlink.LinkByName(n.Parent); err == nil { // otherwise the kernel refuses it, and says why
			attrs.ParentIndex = parent.Attrs().Index
		}
		return &netlink.Macvlan{LinkAttrs: attrs, Mode: netlink.MACVLAN_MODE_BRIDGE}
	}
	// A bridge takes the smallest MTU of its ports until its own has once been changed: raiseLink changes it.
	attrs.MTU = n.MTU - 1
	return &netlink.Bridge{LinkAttrs: attrs}
}

// isOn reports whether a macvlan is on an interface of the host.
func isOn(link netlink.Link, parent string) bool {
	p, err := netlink.LinkByName(parent)
	return err == nil && p.Attrs().Index == link.Attrs().ParentIndex
}

func kindName(n spec.Network) string {
	if n.Kind == "" {
		return site.Bridge
	}
	return n.Kind
}

// routedPrefix begins the names of the host's ends of a routed network's links.
func routedPrefix(n spec.Network) string { return site.RoutedPrefix(n.Site, n.Name) }

// routedLinks gives the host's ends of a routed network's links.
func routedLinks(n spec.Network) ([]netlink.Link, error) {
	links, err := ends.Whole(netlink.LinkList)
	if err != nil {
		return nil, err
	}
	var all []netlink.Link
	for _, link := range links {
		if name := link.Attrs().Name; site.IsRouted(name) && name[:len(routedPrefix(n))] == routedPrefix(n) {
			all = append(all, link)
		}
	}
	return all, nil
}

// upParent sets the interface of a macvlan network up, if it is the end of a veth pair: those are Orrery's.
func upParent(n spec.Network) error {
	if !isMacvlan(n) {
		return nil
	}
	parent, err := netlink.LinkByName(n.Parent)
	if err != nil {
		return err
	}
	if isUp(parent) {
		return nil
	}
	if !isVethEnd(parent) {
		return fmt.Errorf("interface %s: %w", n.Parent, unix.ENETDOWN)
	}
	if err := ends.DisableIPv6(n.Parent); err != nil {
		return err
	}
	return netlink.LinkSetUp(parent)
}
