// Package passthrough lends interfaces of the host to nodes, and restores them afterwards. The
// former state is recorded in the interface's alias, which moves with the interface. The caller
// must hold the lock of the host's networks.
package passthrough

import (
	"net"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"orrery/internal/network/ends"
	"orrery/internal/problem"
)

// Prepare prepares an interface of the host for a node, given as SITE/ID, to take. It refuses an
// interface that the host itself needs, since this would cut the host off.
func Prepare(name, node string) error {
	if err := Restore(name, node); err != nil {
		return err
	}
	link, err := netlink.LinkByName(name)
	if ends.IsNotFound(err) {
		return problem.New(problem.Unable, "the host has no interface %s for node %s to take", name, node).
			Try("ip link lists the existing ones; another node may have taken it; orrery up creates missing ends of veth pairs")
	}
	if err != nil {
		return err
	}
	if err := checkUnused(link, node); err != nil {
		return err
	}
	alias, err := savedStateOf(link, node).aliasText(link)
	if err != nil {
		return err
	}
	if len(alias) > maxAlias {
		return problem.New(problem.Unable, "the alias of interface %s is too long to be saved", name).
			Try("ip link set %s alias ''", name)
	}
	return netlink.LinkSetAlias(link, alias)
}

// Restore restores the name and all settings of an interface that a node took, if it is on the
// host.
func Restore(name, node string) error {
	if err := restore(name, node); err != nil {
		return problem.New(problem.Failed, "restore interface %s", name).Because(err)
	}
	return nil
}

func restore(name, node string) error {
	links, err := ends.ListConsistent(netlink.LinkList)
	if err != nil {
		return err
	}
	for _, link := range links {
		if p, ok := readSavedState(link); ok && p.node == node && p.name == name {
			return p.apply(link)
		}
	}
	return nil
}

// apply restores the former settings of an interface that is on the host.
func (p savedState) apply(link netlink.Link) error {
	attrs := link.Attrs()
	if attrs.Name != p.name || attrs.HardwareAddr.String() != p.mac {
		if err := netlink.LinkSetDown(link); err != nil {
			return err
		}
	}
	if mac, err := net.ParseMAC(p.mac); err == nil && attrs.HardwareAddr.String() != p.mac {
		if err := netlink.LinkSetHardwareAddr(link, mac); err != nil {
			return err
		}
	}
	if attrs.Name != p.name {
		if err := netlink.LinkSetName(link, p.name); err != nil {
			return err
		}
	}
	if p.state == "up" {
		if err := netlink.LinkSetUp(link); err != nil {
			return err
		}
	}
	return netlink.LinkSetAlias(link, p.alias)
}

// checkUnused returns an error if a node cannot take an interface, because the host uses it.
func checkUnused(link netlink.Link, node string) error {
	attrs := link.Attrs()
	used := func(how string, args ...any) *problem.Problem {
		return problem.New(problem.Unable, "node "+node+" cannot take interface "+attrs.Name+": "+how, args...)
	}
	if ends.IsOwn(attrs.Name) || attrs.Flags&net.FlagLoopback != 0 || link.Type() == "bridge" || link.Type() == "bond" {
		return used("it is not a network card").Try("choose one that the host does not need")
	}
	if attrs.MasterIndex != 0 {
		return used("it is part of %s", ends.NameOf(attrs.MasterIndex)).
			Try("if the host does not need it there: ip link set %s nomaster", attrs.Name)
	}
	addresses, err := ends.ListConsistent(func() ([]netlink.Addr, error) {
		return netlink.AddrList(link, netlink.FAMILY_ALL)
	})
	if err != nil {
		return err
	}
	for _, a := range addresses {
		if !a.IP.IsLinkLocalUnicast() || a.IP.To4() != nil {
			return used("it has the host's address %s", a.IPNet).
				Try("choose an interface that the host does not need, or remove its address")
		}
	}
	if route, err := routeThrough(link); err != nil || route != "" {
		if err != nil {
			return err
		}
		return used("the host's route to %s uses it", route).Try("choose an interface that the host does not need")
	}
	links, err := ends.ListConsistent(netlink.LinkList)
	if err != nil {
		return err
	}
	for _, other := range links {
		if above := other.Attrs(); above.ParentIndex == attrs.Index && above.NetNsID < 0 && other.Type() != "veth" {
			return used("%s is attached to it", above.Name).Try("choose another interface, or remove %s", above.Name)
		}
	}
	return nil
}

// routeThrough returns the destination of a route through a link, or "" if there is none.
func routeThrough(link netlink.Link) (string, error) {
	by := netlink.Route{LinkIndex: link.Attrs().Index, Type: unix.RTN_UNICAST}
	for _, family := range []int{netlink.FAMILY_V4, netlink.FAMILY_V6} {
		routes, err := ends.ListConsistent(func() ([]netlink.Route, error) {
			return netlink.RouteListFiltered(family, &by, netlink.RT_FILTER_OIF|netlink.RT_FILTER_TABLE|netlink.RT_FILTER_TYPE)
		})
		if err != nil {
			return "", err
		}
		for _, r := range routes {
			switch {
			case r.Dst == nil:
				return "everywhere", nil
			case family == netlink.FAMILY_V6 && (r.Dst.IP.IsLinkLocalUnicast() || r.Dst.IP.IsMulticast()):
			default:
				return r.Dst.String(), nil
			}
		}
	}
	return "", nil
}
