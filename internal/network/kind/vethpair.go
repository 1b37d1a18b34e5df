package kind

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

// A vethPair is a veth pair whose ends stand in for interfaces of the host. Its separate link
// carries only its mark.
type vethPair struct{ bridge }

func (vethPair) HasNodes() bool { return false }

func (vethPair) Check(n spec.Network) error {
	if n.Ends[0] == "" || n.Ends[1] == "" || n.Ends[0] == n.Ends[1] || ends.IsOwn(n.Ends[0]) || ends.IsOwn(n.Ends[1]) {
		return problem.New(problem.Unable, "network %s: its ends cannot be %q and %q", n.Name, n.Ends[0], n.Ends[1])
	}
	return nil
}

// The hardware address of each end of a veth pair is derived from its name. This identifies the end
// as Orrery's.

// NewVethPair returns a new veth pair, not yet added, between two ends on the host.
func NewVethPair(near, far string, mtu int) *netlink.Veth {
	attrs := netlink.NewLinkAttrs()
	attrs.Name, attrs.HardwareAddr, attrs.MTU = near, ends.MAC(near), mtu
	return &netlink.Veth{LinkAttrs: attrs, PeerName: far, PeerHardwareAddr: ends.MAC(far), PeerMTU: uint32(mtu)}
}

// IsVethEnd reports whether a link is an end of a veth pair made by NewVethPair. It checks the
// hardware address.
func IsVethEnd(link netlink.Link) bool {
	return link.Type() == "veth" && bytes.Equal(link.Attrs().HardwareAddr, ends.MAC(link.Attrs().Name))
}

// RemoveVethPair removes a veth pair by one of its ends, if it exists and is Orrery's.
func RemoveVethPair(name string) error {
	link, err := netlink.LinkByName(name)
	if ends.IsNotFound(err) || err == nil && !IsVethEnd(link) {
		return nil
	}
	if err != nil {
		return err
	}
	return ends.Remove(name)
}

// Make makes a veth pair. The mark, which is on a separate link, already exists, so later calls
// find what a killed run left. Make cannot see an end that a node has taken. The plan checks that
// case.
func (vethPair) Make(n spec.Network) error {
	if err := makeVethPair(n); err != nil {
		return problem.New(problem.Failed, "network %s: create it", n.Name).Because(err)
	}
	return nil
}

func makeVethPair(n spec.Network) error {
	here := 0
	for _, name := range n.Ends {
		_, err := netlink.LinkByName(name) // Refuse has checked that an existing one is Orrery's
		if err == nil {
			here++
		} else if !ends.IsNotFound(err) {
			return err
		}
	}
	if here == 0 {
		if err := netlink.LinkAdd(NewVethPair(n.Ends[0], n.Ends[1], n.MTU)); err != nil {
			return err
		}
	}
	for _, name := range n.Ends {
		link, err := netlink.LinkByName(name)
		if ends.IsNotFound(err) && here == 1 {
			continue // the other end is in a node
		}
		if err != nil {
			return err
		}
		if err := setUpEnd(n, link); err != nil {
			return err
		}
	}
	return nil
}

func setUpEnd(n spec.Network, link netlink.Link) error {
	if err := ends.DisableIPv6(link.Attrs().Name); err != nil {
		return err
	}
	if err := netlink.LinkSetAlias(link, VethPairAlias(n)); err != nil {
		return err
	}
	if err := netlink.LinkSetMTU(link, n.MTU); err != nil {
		return err
	}
	return netlink.LinkSetUp(link)
}

// VethPairAlias returns the alias of the ends of a veth pair, which names its network.
func VethPairAlias(n spec.Network) string { return "orrery vethpair " + n.Site + " " + n.Name }

// isAliasOf reports whether an end's alias is that of a network's veth pair. Former versions wrote
// "cable" instead of "vethpair".
func isAliasOf(n spec.Network, alias string) bool {
	return alias == VethPairAlias(n) || alias == "orrery cable "+n.Site+" cable"+strings.TrimPrefix(n.Name, spec.VethPair)
}

// Remove removes a veth pair by any end on the host. If nodes have both ends, the pair is removed
// when they end.
func (vethPair) Remove(n spec.Network) error {
	for _, name := range n.Ends {
		if err := RemoveVethPair(name); err != nil {
			return err
		}
	}
	return nil
}

// CheckHost returns an error if the name of an end of a veth pair is taken on this host.
func (vethPair) CheckHost(n spec.Network, _ []spec.Network) error {
	for _, name := range n.Ends {
		link, err := netlink.LinkByName(name)
		if ends.IsNotFound(err) {
			continue
		}
		if err != nil {
			return problem.New(problem.Failed, "network %s: read %s", n.Name, name).Because(err)
		}
		alias := passthrough.Alias(link)
		if own := IsVethEnd(link); own && (alias == "" || isAliasOf(n, alias)) {
			continue
		} else if own {
			return problem.New(problem.Unable, "network %s: %s is an end of another veth pair (%s)", n.Name, name, alias).
				Try("give the end another name")
		}
		return clash.EndTaken(&n, name)
	}
	return nil
}

// Observe records what differs from what Make made. Both ends may also be missing because nodes
// have taken them.
func (vethPair) Observe(n *observe.Network, _ netlink.Link) {
	if drift := driftOf(n.Network); drift != "" {
		n.AddDrift(drift)
	}
}

func driftOf(n spec.Network) observe.NetworkDrift {
	here := 0
	for _, name := range n.Ends {
		link, err := netlink.LinkByName(name)
		if err != nil {
			continue
		}
		if !IsVethEnd(link) {
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
