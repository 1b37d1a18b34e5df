package network

import (
	"bytes"
	"strings"

	"github.com/vishvananda/netlink"

	"orrery/internal/network/ends"
	"orrery/internal/network/passthrough"
	"orrery/internal/observe"
	"orrery/internal/plan/clash"
	"orrery/internal/problem"
	"orrery/internal/site/spec"
)

// Each end of a veth pair has a hardware address that follows from its name: by that it is known for ours.

// newVethPair gives a veth pair that is not there yet, between two ends on the host.
func newVethPair(near, far string, mtu int) *netlink.Veth {
	attrs := netlink.NewLinkAttrs()
	attrs.Name, attrs.HardwareAddr, attrs.MTU = near, ends.MAC(near), mtu
	return &netlink.Veth{LinkAttrs: attrs, PeerName: far, PeerHardwareAddr: ends.MAC(far), PeerMTU: uint32(mtu)}
}

// isVethEnd reports whether a link is the end of a veth pair: it has the hardware address that such a one was made with.
func isVethEnd(link netlink.Link) bool {
	return link.Type() == "veth" && bytes.Equal(link.Attrs().HardwareAddr, ends.MAC(link.Attrs().Name))
}

// removeVethPair removes a veth pair by one of its ends, if it is there and ours.
func removeVethPair(name string) error {
	link, err := netlink.LinkByName(name)
	if ends.Missing(err) || err == nil && !isVethEnd(link) {
		return nil
	}
	if err != nil {
		return err
	}
	return removeLink(name)
}

// layVethPair makes a veth pair. The mark, which is on a link of its own, is there already: so what a killed run leaves
// is found by it. An end that a node has taken is not here to be seen; that it has is for the plan to know.
func layVethPair(n spec.Network) error {
	here := 0
	for _, name := range n.Ends {
		_, err := netlink.LinkByName(name) // ours, if it is there, as refuseVethPair has seen
		if err == nil {
			here++
		} else if !ends.Missing(err) {
			return err
		}
	}
	if here == 0 {
		if err := netlink.LinkAdd(newVethPair(n.Ends[0], n.Ends[1], n.MTU)); err != nil {
			return err
		}
	}
	for _, name := range n.Ends {
		link, err := netlink.LinkByName(name)
		if ends.Missing(err) && here == 1 {
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
	if err := ends.DisableIPv6(link.Attrs().Name); err != nil {
		return err
	}
	if err := netlink.LinkSetAlias(link, vethPairAlias(n)); err != nil {
		return err
	}
	if err := netlink.LinkSetMTU(link, n.MTU); err != nil {
		return err
	}
	return netlink.LinkSetUp(link)
}

// vethPairAlias says whose the ends of a veth pair are.
func vethPairAlias(n spec.Network) string { return "orrery vethpair " + n.Site + " " + n.Name }

// isAliasOf reports whether the alias of an end says that it is of a veth pair; those made before the word was vethpair say cable.
func isAliasOf(n spec.Network, alias string) bool {
	return alias == vethPairAlias(n) || alias == "orrery cable "+n.Site+" cable"+strings.TrimPrefix(n.Name, spec.VethPair)
}

// replaceEnds removes a veth pair that has other ends than it shall have.
func replaceEnds(n spec.Network, all []bridge) error {
	for _, b := range all {
		if b.marked && b.mark.Bridge == n.Bridge && b.mark.Ends != n.Ends {
			if err := removeEnds(b.mark); err != nil {
				return err
			}
		}
	}
	return nil
}

// removeEnds removes a veth pair, by whichever end is here. If a node has both, it goes when that ends.
func removeEnds(n spec.Network) error {
	for _, name := range n.Ends {
		if err := removeVethPair(name); err != nil {
			return err
		}
	}
	return nil
}

// refuseVethPair says why a veth pair must not be made on this host: the name of an end is taken.
func refuseVethPair(n spec.Network) error {
	for _, name := range n.Ends {
		link, err := netlink.LinkByName(name)
		if ends.Missing(err) {
			continue
		}
		if err != nil {
			return failed(n, "look at "+name, err)
		}
		alias := passthrough.Alias(link)
		if own := isVethEnd(link); own && (alias == "" || isAliasOf(n, alias)) {
			continue
		} else if own {
			return problem.New(problem.Unable, "network %s: %s is an end of another veth pair (%s)", n.Name, name, alias).Try("give the end another name")
		}
		return clash.End(&n, name)
	}
	return nil
}

// checkVethPair says what is not as layVethPair left it. That both ends are gone may be because nodes have taken them.
func checkVethPair(n spec.Network) observe.NetworkDrift {
	here := 0
	for _, name := range n.Ends {
		link, err := netlink.LinkByName(name)
		if err != nil {
			continue
		}
		if !isVethEnd(link) {
			return observe.EndForeign
		}
		here++
		if link.Attrs().MTU != n.MTU {
			return observe.EndChanged
		}
	}
	if here == 0 {
		return observe.EndsGone
	}
	return ""
}
