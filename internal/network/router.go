package network

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"

	"github.com/vishvananda/netlink"

	"orrery/internal/host"
	"orrery/internal/network/ends"
	"orrery/internal/network/kind"
	"orrery/internal/problem"
	"orrery/internal/site/spec"
)

// A router is the way out of a network whose gateway address the host cannot have, because it has
// that address on another network: a twin has the addresses of its original. The router is a
// network namespace that has this address instead, on a link to the bridge. It masquerades as its
// end of a link to the host, and the host masquerades that address as itself:
//
//	bridge ═ port ─── gate [router] exit ─── uplink [host] ─── world

// The names of the router's ends.
const (
	gate = "gate" // towards the network
	exit = "exit" // towards the host
)

func uplinkName(n spec.Network) string { return routerLink("uplink", n) }
func portName(n spec.Network) string   { return routerLink("port", n) }
func routerName(n spec.Network) string { return "orrery-" + routerLink("router", n) }

// routerLink returns the name of a link or namespace of a router. The digest contains the former
// word "outlet", so that existing routers are found.
func routerLink(what string, n spec.Network) string {
	d := sha256.Sum256([]byte("outlet\x00" + what + "\x00" + n.Site + "\x00" + n.Name))
	return ends.RouterPrefix + hex.EncodeToString(d[:5])
}

func routerMark(n spec.Network) string { return "orrery router " + n.Site + " " + n.Name }

func uplink(n spec.Network) linkMatch { return linkMatch{name: uplinkName(n)} }

// makeRouter makes the router of a network, or changes an existing one to match its spec. The
// host's rules for it already exist, and the router's own rules are written before its links are
// up.
func makeRouter(n spec.Network, bridge netlink.Link) error {
	router, err := openNamespace(routerName(n), routerMark(n))
	if err != nil {
		return err
	}
	defer router.Close()
	port, err := openVethPair(portName(n), gate, n.MTU, router)
	if err != nil {
		return err
	}
	up, err := openVethPair(uplinkName(n), exit, n.MTU, router)
	if err != nil {
		return err
	}
	addresses, err := choosePair(up)
	if err != nil {
		return err
	}
	if err := host.InNetNS(router, func() error { return setUpRouter(n, addresses) }); err != nil {
		return fmt.Errorf("router %s: %w", routerName(n), err)
	}
	if err := setAddress(up, addresses.host.String()); err != nil {
		return err
	}
	for _, link := range []netlink.Link{up, port} {
		if err := ends.DisableIPv6(link.Attrs().Name); err != nil {
			return err
		}
		if err := netlink.LinkSetUp(link); err != nil {
			return err
		}
	}
	return netlink.LinkSetMaster(port, bridge)
}

// removeRouter removes the router of a network, if it or a part of it exists.
func removeRouter(n spec.Network) error {
	for _, name := range []string{uplinkName(n), portName(n)} {
		if err := kind.RemoveVethPair(name); err != nil {
			return err
		}
	}
	return removeNamespace(routerName(n), routerMark(n))
}

// openVethPair returns the host's end of a link to a router. It makes the link if it does not exist
// or is incomplete.
func openVethPair(near, far string, mtu int, router *os.File) (netlink.Link, error) {
	link, err := netlink.LinkByName(near)
	switch {
	case ends.IsNotFound(err):
	case err != nil:
		return nil, err
	case !kind.IsVethEnd(link):
		return nil, problem.New(problem.Unable, "the host has an interface %s that is not Orrery's", near).
			Try("rename it or remove it: ip link delete %s", near)
	case isConnectedTo(link, far, router):
		return link, netlink.LinkSetMTU(link, mtu)
	default: // for example to a router that was removed by hand
		if err := ends.Remove(near); err != nil {
			return nil, err
		}
	}
	if err := host.InNetNS(router, func() error { return ends.Remove(far) }); err != nil {
		return nil, err
	}
	veth := kind.NewVethPair(near, far, mtu)
	veth.PeerHardwareAddr = ends.MAC(near + " " + far) // all routers have ends of these names
	veth.PeerNamespace = netlink.NsFd(int(router.Fd()))
	if err := netlink.LinkAdd(veth); err != nil {
		return nil, err
	}
	return netlink.LinkByName(near)
}

// isConnectedTo reports whether the other end of a link is in a router, under its name.
func isConnectedTo(link netlink.Link, far string, router *os.File) bool {
	return host.InNetNS(router, func() error {
		other, err := netlink.LinkByName(far)
		if err == nil && (other.Attrs().ParentIndex != link.Attrs().Index ||
			other.Attrs().Index != link.Attrs().ParentIndex) {
			err = fmt.Errorf("%s is connected to another link", far)
		}
		return err
	}) == nil
}

// checkRouter returns an error if something differs from what makeRouter made.
func checkRouter(n spec.Network, bridge netlink.Link) error {
	port, err := netlink.LinkByName(portName(n))
	if err != nil {
		return err
	}
	up, err := netlink.LinkByName(uplinkName(n))
	if err != nil {
		return err
	}
	addresses, ok := pairOf(up)
	if !ok || port.Attrs().MasterIndex != bridge.Attrs().Index || !ends.IsUp(port) || !ends.IsUp(up) {
		return fmt.Errorf("%s or %s has changed", portName(n), uplinkName(n))
	}
	if !isNamespace(namespaceDir + "/" + routerName(n)) {
		return fmt.Errorf("%s is missing", routerName(n))
	}
	router, err := openNamespace(routerName(n), routerMark(n))
	if err != nil {
		return err
	}
	defer router.Close()
	return host.InNetNS(router, func() error { return checkInside(n, addresses) })
}
