package vxlan

import (
	"errors"
	"net"
	"time"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"

	"orrery/internal/network/ends"
	"orrery/internal/problem"
	"orrery/internal/site"
	"orrery/internal/site/spec"
)

// Existing links of the host stay unchanged. A VLAN is a device of Orrery's own on top of the
// interface, and on a bridge only one port is its own. The hardware address of that port is so high
// that the bridge does not use it as its own. Its MTU is that of the bridge, since the bridge's MTU
// would otherwise shrink.

// uplinkPort returns the name of the link's end that is a port of the host's bridge.
func uplinkPort(n spec.Network) string { return "orl" + Name(n)[3:] }

func checkUplink(n spec.Network) error {
	u := n.Uplink
	if u == (spec.Uplink{}) {
		return nil
	}
	if n.VXLAN != (spec.VXLAN{}) || !site.KindOf(n.Kind).Bridged ||
		(u.Bridge == "") != (u.Interface != "" && u.VLAN >= 1 && u.VLAN <= 4094) || u.Bridge != "" &&
		(u.Interface != "" || u.VLAN != 0) {
		return problem.New(problem.Unable, "network %s: it cannot be joined with %q", n.Name, u)
	}
	return nil
}

// checkUplinkConflicts returns an error if a network cannot be joined with the link of the host.
func checkUplinkConflicts(n spec.Network) error {
	u := n.Uplink
	if u == (spec.Uplink{}) {
		return nil
	}
	name := u.Bridge + u.Interface
	link, err := netlink.LinkByName(name)
	switch {
	case errors.As(err, &netlink.LinkNotFoundError{}):
		return problem.New(problem.Unable, "network %s: the host has no interface %s", n.Name, name).
			Try("ip link lists the existing ones")
	case err != nil:
		return err
	}
	attrs := link.Attrs()
	switch kind := link.Type(); {
	case u.Bridge != "" && kind != "bridge":
		return problem.New(problem.Unable, "network %s: %s is not a bridge but a %s", n.Name, name, kind).
			Try("ip link show type bridge lists the host's bridges")
	case attrs.Name[:min(3, len(attrs.Name))] == "orb" && len(attrs.Alias) > 0:
		return problem.New(problem.Unable, "network %s: %s belongs to another of Orrery's networks", n.Name, name).
			Try("choose an interface of the host")
	case attrs.Flags&net.FlagLoopback != 0:
		return problem.New(problem.Unable, "network %s: no other host is reachable through %s", n.Name, name).
			Try("choose a network card or a bond")
	case attrs.Flags&net.FlagUp == 0:
		return problem.New(problem.Unable, "network %s: %s is down", n.Name, name).Try("ip link set %s up", name)
	case attrs.MTU < n.MTU:
		return problem.New(problem.Unable, "network %s: mtu %d is more than the %d of %s", n.Name, n.MTU, attrs.MTU, name).
			Try("set mtu = %d for the network, or a larger one for %s: ip link set %s mtu %d", attrs.MTU, name, name, n.MTU)
	}
	if u.VLAN == 0 {
		return nil
	}
	links, err := netlink.LinkList()
	if err != nil {
		return err
	}
	for _, other := range links {
		if l, ok := other.(*netlink.Vlan); ok && l.ParentIndex == attrs.Index && l.VlanId == u.VLAN && l.Name != Name(n) {
			p := problem.New(problem.Unable, "network %s: the host already has %s, as %s (%q)", n.Name, u, l.Name, l.Alias)
			return p.Try("remove it, or put it into a bridge and set bridge = \"NAME\" instead")
		}
	}
	return nil
}

// newUplink returns the device that joins a network with a link of the host.
func newUplink(n spec.Network, attrs netlink.LinkAttrs) (netlink.Link, error) {
	if n.Uplink.Bridge == "" {
		parent, err := netlink.LinkByName(n.Uplink.Interface)
		if err != nil {
			return nil, err
		}
		attrs.ParentIndex = parent.Attrs().Index
		return &netlink.Vlan{LinkAttrs: attrs, VlanId: n.Uplink.VLAN, VlanProtocol: netlink.VLAN_PROTOCOL_8021Q}, nil
	}
	bridge, err := netlink.LinkByName(n.Uplink.Bridge)
	if err != nil {
		return nil, err
	}
	high := ends.MAC(uplinkPort(n))
	high[0] = 0xfe
	return &netlink.Veth{LinkAttrs: attrs, PeerName: uplinkPort(n), PeerHardwareAddr: high,
		PeerMTU: uint32(bridge.Attrs().MTU)}, nil
}

// attachUplink makes the other end of the link a port of the host's bridge. This is the last step, so no
// traffic passes before.
func attachUplink(n spec.Network) error {
	if n.Uplink.Bridge == "" {
		return nil
	}
	bridge, err := netlink.LinkByName(n.Uplink.Bridge)
	if err != nil {
		return err
	}
	end, err := netlink.LinkByName(uplinkPort(n))
	if err != nil {
		return err
	}
	if err := ends.DisableIPv6(uplinkPort(n)); err != nil {
		return err
	}
	if end.Attrs().MTU != bridge.Attrs().MTU {
		if err := netlink.LinkSetMTU(end, bridge.Attrs().MTU); err != nil {
			return err
		}
	}
	if err := netlink.LinkSetUp(end); err != nil {
		return err
	}
	if end.Attrs().MasterIndex == bridge.Attrs().Index {
		return nil
	}
	for range 200 {
		// The kernel notices only some time later that both ends are up, and then the forwarding
		// delay of the bridge would begin.
		if end, err = netlink.LinkByName(uplinkPort(n)); err != nil || end.Attrs().OperState == netlink.OperUp {
			break
		}
		time.Sleep(5 * time.Millisecond)
	}
	if err != nil {
		return err
	}
	if err := netlink.LinkSetMaster(end, bridge); err != nil {
		return err
	}
	disableForwardDelay(end)
	return nil
}

// disableForwardDelay makes a port of the host's bridge forward without the bridge's delay. Behind the
// port is a single bridge without another path, so there is no loop. If the spanning tree protocol
// runs, it decides.
func disableForwardDelay(port netlink.Link) {
	request := nl.NewNetlinkRequest(unix.RTM_SETLINK, unix.NLM_F_ACK)
	message := nl.NewIfInfomsg(unix.AF_BRIDGE)
	message.Index = int32(port.Attrs().Index)
	request.AddData(message)
	protinfo := nl.NewRtAttr(unix.IFLA_PROTINFO|unix.NLA_F_NESTED, nil)
	protinfo.AddRtAttr(nl.IFLA_BRPORT_STATE, []byte{3}) // BR_STATE_FORWARDING
	request.AddData(protinfo)
	_, _ = request.Execute(unix.NETLINK_ROUTE, 0)
}

// isUplinkAttached reports whether the other end of the link is a port of the host's bridge and up.
func isUplinkAttached(n spec.Network) bool {
	if n.Uplink.Bridge == "" {
		return true
	}
	end, err := netlink.LinkByName(uplinkPort(n))
	return err == nil && end.Attrs().MasterIndex != 0 && end.Attrs().Flags&net.FlagUp != 0
}

// uplinkOf returns the uplink that a device is.
func uplinkOf(link netlink.Link) spec.Uplink {
	switch l := link.(type) {
	case *netlink.Vlan:
		parent, err := netlink.LinkByIndex(l.ParentIndex)
		if err != nil {
			return spec.Uplink{}
		}
		return spec.Uplink{Interface: parent.Attrs().Name, VLAN: l.VlanId}
	case *netlink.Veth:
		end, err := netlink.LinkByIndex(l.ParentIndex)
		if err != nil || end.Attrs().MasterIndex == 0 {
			return spec.Uplink{}
		}
		bridge, err := netlink.LinkByIndex(end.Attrs().MasterIndex)
		if err != nil {
			return spec.Uplink{}
		}
		return spec.Uplink{Bridge: bridge.Attrs().Name}
	}
	return spec.Uplink{}
}

// detachUplink removes the other end of a link from the host's bridge before the link is removed, so that
// no more packets arrive.
func detachUplink(n spec.Network) error {
	end, err := findLink(uplinkPort(n))
	if err != nil || end == nil || end.Type() != "veth" {
		return err
	}
	if err = netlink.LinkSetNoMaster(end); errors.Is(err, unix.ENODEV) {
		return nil
	}
	return err
}
