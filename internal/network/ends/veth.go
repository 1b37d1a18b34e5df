package ends

import (
	"os"

	"github.com/vishvananda/netlink"

	"orrery/internal/host"
	"orrery/internal/site/spec"
)

// MakePair makes a pair of virtual interfaces. The inner end gets the given name in a network
// namespace, and the host's end is put on a network of a kind.
func MakePair(nic spec.NIC, kind, inner string, space *os.File) error {
	attrs := netlink.NewLinkAttrs()
	attrs.Name, attrs.MTU, attrs.HardwareAddr = nic.HostIfName, nic.MTU, MAC(nic.HostIfName)
	attrs.HardwareAddr[0] = 0xfe // high, since a bridge without a fixed address takes the lowest of its ports
	pair := &netlink.Veth{LinkAttrs: attrs, PeerName: inner, PeerNamespace: netlink.NsFd(int(space.Fd()))}
	if err := netlink.LinkAdd(pair); err != nil {
		return err
	}
	link, err := netlink.LinkByName(nic.HostIfName)
	if err != nil {
		return err
	}
	return attach(link, nic, kind)
}

// ReclaimExclusive moves an exclusive interface from a network namespace to the host's, if it is still
// there. A virtual interface would otherwise be removed with the namespace.
func ReclaimExclusive(nic spec.NIC, space *os.File) error {
	here, err := os.Open("/proc/thread-self/ns/net")
	if err != nil {
		return err
	}
	defer here.Close()
	return host.InNetNS(space, func() error {
		link, err := netlink.LinkByName(nic.TakenName())
		if IsNotFound(err) {
			return nil
		}
		if err != nil {
			return err
		}
		return netlink.LinkSetNsFd(link, int(here.Fd()))
	})
}
