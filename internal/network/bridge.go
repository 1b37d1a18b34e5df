package network

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"net"
	"os"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"

	"orrery/internal/network/ends"
	"orrery/internal/network/kind"
	"orrery/internal/site/spec"
)

// bridgePrefix begins the names of all of Orrery's bridges (site.BridgeName). Rules use it to
// recognise networks of other sites without knowing them.
const bridgePrefix = "orb"

// ownPrefix begins the names of all of Orrery's links on the host, except the ends of veth pairs.
// Other links hardly ever have such names.
const ownPrefix = "or"

// A bridge is the link on the host that carries a network's mark. It is a bridge for all kinds of
// networks except macvlan.
type bridge struct {
	link   netlink.Link
	marked bool         // false if a run was killed right after making it, or if the mark was removed
	mark   spec.Network // network it was made for
	ports  int
}

// bridges returns all links that carry a mark of Orrery, of all sites.
func bridges() ([]bridge, error) {
	links, err := ends.ListConsistent(netlink.LinkList)
	if err != nil {
		return nil, err
	}
	ports := map[int]int{}
	for _, link := range links {
		ports[link.Attrs().MasterIndex]++
	}
	var all []bridge
	for _, link := range links {
		if b, ok := ownBridge(link); ok {
			b.ports = ports[link.Attrs().Index]
			all = append(all, b)
		}
	}
	return all, nil
}

// ownBridge reports whether Orrery made a link for a network. It checks the mark or, since a link cannot
// be made and marked in one operation, the hardware address with which it was made.
func ownBridge(link netlink.Link) (bridge, bool) {
	attrs := link.Attrs()
	if !kind.IsLinkType(link.Type()) {
		return bridge{}, false
	}
	n, marked := readMark(attrs.Alias)
	if marked && n.Bridge != attrs.Name || !marked &&
		(attrs.Alias != "" || !bytes.Equal(attrs.HardwareAddr, bridgeMAC(attrs.Name))) {
		return bridge{}, false
	}
	return bridge{link: link, marked: marked, mark: n}, true
}

// bridgeMAC returns the hardware address of a bridge. Without a fixed address, the bridge would
// change its address with each node that comes or goes, and the other nodes would lose their
// gateway for a while.
func bridgeMAC(name string) net.HardwareAddr {
	d := sha256.Sum256([]byte("bridge\x00" + name))
	return net.HardwareAddr{d[0]&0xfc | 0x02, d[1], d[2], d[3], d[4], d[5]}
}

// openLink returns the link of a network, marked, and makes it if it does not exist. A new link is
// down. A link of another type is replaced. checkNoUsers has checked that no node is on it.
func openLink(n spec.Network) (netlink.Link, error) {
	k := kind.Of(n.Kind)
	link, err := netlink.LinkByName(n.Bridge)
	if err == nil && (link.Type() != k.LinkType() || !k.IsOn(link, n)) {
		if err := netlink.LinkDel(link); err != nil {
			return nil, err
		}
		link, err = nil, netlink.LinkNotFoundError{}
	}
	if ends.IsNotFound(err) {
		attrs := netlink.NewLinkAttrs()
		attrs.Name, attrs.HardwareAddr = n.Bridge, bridgeMAC(n.Bridge)
		if err := netlink.LinkAdd(k.NewLink(n, attrs)); err != nil {
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

// setUpLink applies the settings of the network to its link and sets the link up.
func setUpLink(n spec.Network, link netlink.Link) error {
	if link.Attrs().MTU != n.MTU {
		if err := netlink.LinkSetMTU(link, n.MTU); err != nil {
			return fmt.Errorf("mtu %d: %w", n.MTU, err)
		}
	}
	if link.Type() == "bridge" {
		if err := disableForwardDelay(link); err != nil {
			return fmt.Errorf("spanning tree off: %w", err)
		}
	}
	if err := ends.DisableIPv6(n.Bridge); err != nil {
		return err
	}
	if err := restrictARP(n.Bridge); err != nil {
		return err
	}
	if err := setAddress(link, n.HostAddress()); err != nil {
		return err
	}
	return netlink.LinkSetUp(link)
}

// disableForwardDelay turns off the spanning tree protocol and the forwarding delay of new ports. A
// bridge without a path to another bridge makes no loop, and a node needs its network as soon as it
// boots.
func disableForwardDelay(link netlink.Link) error {
	request := nl.NewNetlinkRequest(unix.RTM_NEWLINK, unix.NLM_F_ACK)
	message := nl.NewIfInfomsg(unix.AF_UNSPEC)
	message.Index = int32(link.Attrs().Index)
	request.AddData(message)
	info := nl.NewRtAttr(unix.IFLA_LINKINFO, nil)
	info.AddRtAttr(nl.IFLA_INFO_KIND, nl.NonZeroTerminated("bridge"))
	data := info.AddRtAttr(nl.IFLA_INFO_DATA, nil)
	data.AddRtAttr(nl.IFLA_BR_STP_STATE, nl.Uint32Attr(0))
	data.AddRtAttr(nl.IFLA_BR_FORWARD_DELAY, nl.Uint32Attr(0))
	request.AddData(info)
	_, err := request.Execute(unix.NETLINK_ROUTE, 0)
	return err
}

// restrictARP makes the host answer ARP on each network only for its address on that network
// (net.ipv4.conf.*.arp_ignore). Otherwise the host would answer twins that ask for the gateway
// address that they share with production.
func restrictARP(bridge string) error {
	return os.WriteFile("/proc/sys/net/ipv4/conf/"+bridge+"/arp_ignore", []byte("1"), 0o644)
}

// setAddress sets the only address of a link, with prefix length, or removes all addresses if it is
// "".
func setAddress(link netlink.Link, only string) error {
	existing, err := ends.ListConsistent(func() ([]netlink.Addr, error) {
		return netlink.AddrList(link, netlink.FAMILY_V4)
	})
	if err != nil {
		return err
	}
	for i := range existing {
		if existing[i].IPNet.String() == only {
			continue
		}
		// Removing an address may remove others of its subnet
		// (net.ipv4.conf.*.promote_secondaries).
		if err := netlink.AddrDel(link, &existing[i]); err != nil && !errors.Is(err, unix.EADDRNOTAVAIL) {
			return err
		}
	}
	if only == "" {
		return nil
	}
	address, err := netlink.ParseAddr(only)
	if err != nil {
		return err
	}
	return netlink.AddrReplace(link, address)
}

// setDownLink sets the link of a network down, if it exists.
func setDownLink(name string) error {
	b, err := findBridge(name)
	if b == nil || err != nil {
		return err
	}
	return netlink.LinkSetDown(b.link)
}

// removeMarked removes the link of a network, if it exists.
func removeMarked(name string) error {
	b, err := findBridge(name)
	if b == nil || err != nil {
		return err
	}
	return netlink.LinkDel(b.link)
}

// removeUnmarked removes bridges that a run made and could not mark because it was killed, except the bridge
// named `but`. A bridge with ports has only lost its mark, and is kept for its nodes.
func removeUnmarked(all []bridge, but string) error {
	for _, b := range all {
		if b.marked || b.ports > 0 || b.link.Attrs().Name == but {
			continue
		}
		if err := netlink.LinkDel(b.link); err != nil && !ends.IsNotFound(err) && !ends.IsGone(err) {
			return err
		}
	}
	return nil
}

// findBridge returns a bridge made by Orrery, or nil.
func findBridge(name string) (*bridge, error) {
	link, err := netlink.LinkByName(name)
	if ends.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	if b, ok := ownBridge(link); ok {
		return &b, nil
	}
	return nil, nil
}
