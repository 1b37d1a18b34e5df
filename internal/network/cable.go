package network

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"net"

	"github.com/vishvananda/netlink"

	"orrery/internal/problem"
	"orrery/internal/site"
	"orrery/internal/site/spec"
)

// A cable is a veth pair, of which each end has a hardware address that follows from its name: by that it is known for ours.

// newCable gives a cable that is not there yet, between two ends on the host.
func newCable(near, far string, mtu int) *netlink.Veth {
	attrs := netlink.NewLinkAttrs()
	attrs.Name, attrs.HardwareAddr, attrs.MTU = near, derivedMAC(near), mtu
	return &netlink.Veth{LinkAttrs: attrs, PeerName: far, PeerHardwareAddr: derivedMAC(far), PeerMTU: uint32(mtu)}
}

// isCable reports whether a link is the end of a cable: it has the hardware address that such a one was made with.
func isCable(link netlink.Link) bool {
	return link.Type() == "veth" && bytes.Equal(link.Attrs().HardwareAddr, derivedMAC(link.Attrs().Name))
}

// removeCable removes a cable by one of its ends, if it is there and ours.
func removeCable(name string) error {
	link, err := netlink.LinkByName(name)
	if missing(err) || err == nil && !isCable(link) {
		return nil
	}
	if err != nil {
		return err
	}
	return removeLink(name)
}

// derivedMAC gives the hardware address of a link: locally administered, unicast, and the same whenever the link is made again.
func derivedMAC(name string) net.HardwareAddr {
	d := sha256.Sum256([]byte("link\x00" + name))
	return net.HardwareAddr{d[0]&0xfc | 0x02, d[1], d[2], d[3], d[4], d[5]}
}

// MakeCable makes a cable on this host whose ends stand in for network interfaces of the machine, and gives the names of these. It may
// be called again. The cable goes with RemoveCable, and with the networks of the site.
func MakeCable(ctx context.Context, siteName, name string) (a, b string, err error) {
	n := cableOf(siteName, name)
	return n.Ends[0], n.Ends[1], Make(ctx, n)
}

// RemoveCable removes a cable that MakeCable has made. One that is not there is no error.
func RemoveCable(ctx context.Context, siteName, name string) error {
	return Remove(ctx, cableOf(siteName, name))
}

func cableOf(siteName, name string) spec.Network {
	d := spec.DigestBytes([]byte(siteName + "\x00" + name))[:10]
	return spec.CableOf(siteName, site.Cable{Name: name, Ends: [2]string{"orc" + d + "a", "orc" + d + "b"}})
}

// layCable makes the veth pair of a cable. The mark, which is on a link of its own, is there already: so what a killed run leaves
// is found by it. An end that a node has taken is not here to be seen; that it has is for the plan to know.
func layCable(n spec.Network) error {
	here := 0
	for _, name := range n.Ends {
		_, err := netlink.LinkByName(name) // ours, if it is there, as refuseCable has seen
		if err == nil {
			here++
		} else if !missing(err) {
			return err
		}
	}
	if here == 0 {
		if err := netlink.LinkAdd(newCable(n.Ends[0], n.Ends[1], n.MTU)); err != nil {
			return err
		}
	}
	for _, name := range n.Ends {
		link, err := netlink.LinkByName(name)
		if missing(err) && here == 1 {
			continue // it is in a node
		}
		if err != nil {
			return err
		}
		if err := raiseEnd(n, link); err != nil {
			return err
		}
	}
	return nil
}

func raiseEnd(n spec.Network, link netlink.Link) error {
	if err := disableIPv6(link.Attrs().Name); err != nil {
		return err
	}
	if err := netlink.LinkSetAlias(link, cableAlias(n)); err != nil {
		return err
	}
	if err := netlink.LinkSetMTU(link, n.MTU); err != nil {
		return err
	}
	return netlink.LinkSetUp(link)
}

// cableAlias says whose the ends of a cable are.
func cableAlias(n spec.Network) string { return "orrery cable " + n.Site + " " + n.Name }

// recable cuts a cable that has other ends than it shall have.
func recable(n spec.Network, all []bridge) error {
	for _, b := range all {
		if b.marked && b.mark.Bridge == n.Bridge && b.mark.Ends != n.Ends {
			if err := cutCable(b.mark); err != nil {
				return err
			}
		}
	}
	return nil
}

// cutCable removes the veth pair of a cable, by whichever end is here. If a node has both, it goes when that ends.
func cutCable(n spec.Network) error {
	for _, name := range n.Ends {
		if err := removeCable(name); err != nil {
			return err
		}
	}
	return nil
}

// refuseCable says why a cable must not be made on this host: the name of an end is taken.
func refuseCable(n spec.Network) error {
	for _, name := range n.Ends {
		link, err := netlink.LinkByName(name)
		if missing(err) {
			continue
		}
		if err != nil {
			return failed(n, "look at "+name, err)
		}
		alias := ownAlias(link)
		if own := isCable(link); own && (alias == "" || alias == cableAlias(n)) {
			continue
		} else if own {
			return problem.New(problem.Unable, "cable %s: %s is an end of another cable (%s)", n.Name, name, alias).Try("give the end another name")
		}
		return problem.New(problem.Unable, "cable %s: the host has an interface %s that is not Orrery's", n.Name, name).
			Try("give the end another name; ip link lists those that are taken")
	}
	return nil
}

// checkCable says what is not as layCable left it. That both ends are gone may be because nodes have taken them.
func checkCable(n spec.Network) string {
	here := 0
	for _, name := range n.Ends {
		link, err := netlink.LinkByName(name)
		if err != nil {
			continue
		}
		if !isCable(link) {
			return "foreign end"
		}
		here++
		if link.Attrs().MTU != n.MTU {
			return fmt.Sprintf("mtu of %s changed", name)
		}
	}
	if here == 0 {
		return spec.EndsGone
	}
	return ""
}
