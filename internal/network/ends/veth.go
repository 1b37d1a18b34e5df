package ends

import (
	"os"

	"github.com/vishvananda/netlink"

	"orrery/internal/host"
	"orrery/internal/problem"
	"orrery/internal/site"
	"orrery/internal/site/spec"
)

// MakeInner makes the link of a container's interface: the inner end, under some name, in a network namespace in which
// nothing else is, from where the engine moves it into the container; the host's end, if the kind has one, where it belongs.
// An exclusive interface of the host is moved there itself and keeps its name. The port is to be guarded before
// (network.Guard).
func MakeInner(nic spec.NIC, kind, inner string, space *os.File) error {
	err := makeInner(nic, kind, inner, space)
	if err != nil {
		return problem.New(problem.Failed, "link of the interface %s cannot be made", nic.Name).At(nic.Network).Because(err)
	}
	return nil
}

func makeInner(nic spec.NIC, kind, inner string, space *os.File) error {
	switch kind {
	case site.Exclusive:
		link, err := netlink.LinkByName(nic.Parent)
		if err != nil {
			return err
		}
		return netlink.LinkSetNsFd(link, int(space.Fd()))
	case site.Macvlan:
		parent, err := netlink.LinkByName(nic.Parent)
		if err != nil {
			return err
		}
		attrs := netlink.NewLinkAttrs()
		attrs.Name, attrs.ParentIndex, attrs.Namespace = inner, parent.Attrs().Index, netlink.NsFd(int(space.Fd()))
		return netlink.LinkAdd(&netlink.Macvlan{LinkAttrs: attrs, Mode: netlink.MACVLAN_MODE_BRIDGE})
	default:
		return makePair(nic, kind, inner, space)
	}
}

// makePair makes a pair of virtual interfaces.
func makePair(nic spec.NIC, kind, inner string, space *os.File) error {
	attrs := netlink.NewLinkAttrs()
	attrs.Name, attrs.MTU, attrs.HardwareAddr = nic.HostEnd, nic.MTU, MAC(nic.HostEnd)
	attrs.HardwareAddr[0] = 0xfe // high, as a bridge without an address of its own takes the lowest of its ports
	pair := &netlink.Veth{LinkAttrs: attrs, PeerName: inner, PeerNamespace: netlink.NsFd(int(space.Fd()))}
	if err := netlink.LinkAdd(pair); err != nil {
		return err
	}
	link, err := netlink.LinkByName(nic.HostEnd)
	if err != nil {
		return err
	}
	return place(link, nic, kind)
}

// TakeBack moves an exclusive interface from a network namespace to this host's, if it is still there. A virtual interface
// would else end with the namespace.
func TakeBack(nic spec.NIC, space *os.File) error {
	here, err := os.Open("/proc/thread-self/ns/net")
	if err != nil {
		return err
	}
	defer here.Close()
	return host.InNetwork(space, func() error {
		link, err := netlink.LinkByName(nic.Parent)
		if Missing(err) {
			return nil
		}
		if err != nil {
			return err
		}
		return netlink.LinkSetNsFd(link, int(here.Fd()))
	})
}
