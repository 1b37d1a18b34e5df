package kind

import (
	"fmt"
	"net"
	"os"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"orrery/internal/network/ends"
	"orrery/internal/observe"
	"orrery/internal/plan/clash"
	"orrery/internal/problem"
	"orrery/internal/site/spec"
)

type macvlan struct{ bridge }

func (macvlan) Check(n spec.Network) error {
	if n.Parent == "" {
		return problem.New(problem.Unable, "network %s: no interface of the host is set", n.Name)
	}
	return nil
}

func (m macvlan) CheckHost(n spec.Network, marked []spec.Network) error {
	if err := m.bridge.CheckHost(n, marked); err != nil {
		return err
	}
	parent, err := netlink.LinkByName(n.Parent)
	if ends.IsNotFound(err) {
		return clash.ParentMissing(&n)
	}
	if err != nil {
		return problem.New(problem.Failed, "network %s: read interface %s", n.Name, n.Parent).Because(err)
	}
	return checkParent(n, parent)
}

// checkParent returns an error if an interface cannot carry the macvlans of a network.
func checkParent(n spec.Network, parent netlink.Link) error {
	attrs := parent.Attrs()
	switch {
	case ends.IsOwn(attrs.Name) || attrs.Flags&net.FlagLoopback != 0 || parent.Type() == "macvlan":
		return problem.New(problem.Unable, "network %s: interface %s cannot have macvlans", n.Name, n.Parent).
			Try("choose a network card, a bond or a VLAN")
	case attrs.MasterIndex != 0:
		return problem.New(problem.Unable, "network %s: interface %s is part of %s", n.Name, n.Parent,
			ends.NameOf(attrs.MasterIndex)).
			Try("choose %s, or another interface", ends.NameOf(attrs.MasterIndex))
	case attrs.MTU < n.MTU:
		return problem.New(problem.Unable, "network %s: mtu %d is more than the %d of interface %s", n.Name, n.MTU,
			attrs.MTU, n.Parent).
			Try("set mtu = %d for the network, or a larger one for the interface: ip link set %s mtu %d", attrs.MTU, n.Parent,
				n.MTU)
	case !ends.IsUp(parent) && !IsVethEnd(parent):
		return problem.New(problem.Unable, "network %s: interface %s is down", n.Name, n.Parent).
			Try("ip link set %s up", n.Parent)
	}
	return nil
}

func (macvlan) LinkType() string { return "macvlan" }

func (macvlan) NewLink(n spec.Network, attrs netlink.LinkAttrs) netlink.Link {
	attrs.MTU = n.MTU
	if parent, err := netlink.LinkByName(n.Parent); err == nil { // otherwise the kernel returns the error
		attrs.ParentIndex = parent.Attrs().Index
	}
	return &netlink.Macvlan{LinkAttrs: attrs, Mode: netlink.MACVLAN_MODE_BRIDGE}
}

func (macvlan) IsOn(link netlink.Link, n spec.Network) bool {
	p, err := netlink.LinkByName(n.Parent)
	return err == nil && p.Attrs().Index == link.Attrs().ParentIndex
}

// Make sets the network's interface up if it is an end of a veth pair, since those are Orrery's.
func (macvlan) Make(n spec.Network) error {
	if err := setUpParent(n); err != nil {
		return problem.New(problem.Failed, "network %s: set its interface up", n.Name).Because(err)
	}
	return nil
}

func setUpParent(n spec.Network) error {
	parent, err := netlink.LinkByName(n.Parent)
	if err != nil {
		return err
	}
	if ends.IsUp(parent) {
		return nil
	}
	if !IsVethEnd(parent) {
		return fmt.Errorf("interface %s: %w", n.Parent, unix.ENETDOWN)
	}
	if err := ends.DisableIPv6(n.Parent); err != nil {
		return err
	}
	return netlink.LinkSetUp(parent)
}

func (m macvlan) Observe(n *observe.Network, link netlink.Link) {
	if !m.IsOn(link, n.Network) {
		n.Parent = ends.NameOf(link.Attrs().ParentIndex)
	}
}

func (macvlan) Attach(nic spec.NIC, inner string, space *os.File) error {
	parent, err := netlink.LinkByName(nic.Parent)
	if err != nil {
		return err
	}
	attrs := netlink.NewLinkAttrs()
	attrs.Name, attrs.ParentIndex, attrs.Namespace = inner, parent.Attrs().Index, netlink.NsFd(int(space.Fd()))
	return netlink.LinkAdd(&netlink.Macvlan{LinkAttrs: attrs, Mode: netlink.MACVLAN_MODE_BRIDGE})
}
