package site

import (
	"cmp"
	"crypto/sha256"
	"encoding/base32"
	"strings"
)

// The kinds of networks.
const (
	Bridge    = "bridge"    // the default: a bridge of the host, and a veth pair for each node
	Routed    = "routed"    // a veth pair for each node and no bridge; the host routes between them
	Macvlan   = "macvlan"   // an interface for each node on top of one of the host's
	Exclusive = "exclusive" // each node takes an interface of the host
)

// A NetworkKind has the properties common to all networks of one kind. Rules and plans use these
// properties, not the name of a kind. Package network/kind implements how a host creates a network
// of each kind.
type NetworkKind struct {
	Name string
	// Bridged means that the links of nodes are ports of the network's own bridge. Each port can
	// therefore filter what its node sends. A switch of releases moves a port to another bridge
	// while the node runs, and Orrery can join the bridges of several hosts.
	Bridged bool
	// Routed means that each node has a link of its own, and the host routes between the links. It
	// needs the gateway for that. Nothing joins such a network with one of another host.
	Routed bool
	// OnInterface means that the network uses an interface of the host, which no other network may
	// use.
	OnInterface bool
	// TakesInterfaces means that each node takes an interface of the host for its exclusive use.
	TakesInterfaces bool
	// VirtualFunctions means that the interfaces that nodes take are virtual functions of the
	// network's interfaces, which the plan assigns (package plan/vfs).
	VirtualFunctions bool
	// WithoutHost means that the host has no address on the network and forwards nothing for its
	// nodes.
	WithoutHost bool
}

// Wired reports whether the hosts' own interfaces connect the nodes of several hosts.
func (k NetworkKind) Wired() bool { return k.OnInterface || k.TakesInterfaces }

// HasHostEnds reports whether the host has an end of the link to each node. Virtual machines
// support no other links.
func (k NetworkKind) HasHostEnds() bool { return k.Bridged || k.Routed }

// NetworkKinds are the kinds of networks that a site file may name. The default is first.
var NetworkKinds = []NetworkKind{
	{Name: Bridge, Bridged: true},
	{Name: Routed, Routed: true},
	{Name: Macvlan, OnInterface: true},
	{Name: Exclusive, TakesInterfaces: true, WithoutHost: true},
	{Name: "sriov", TakesInterfaces: true, WithoutHost: true, VirtualFunctions: true},
}

// KindNames returns the names of Kinds.
func KindNames() []string {
	var names []string
	for _, k := range NetworkKinds {
		names = append(names, k.Name)
	}
	return names
}

// KindOf returns the kind called name, or the default for "". A kind that does not exist has no
// properties.
func KindOf(name string) NetworkKind {
	for _, k := range NetworkKinds {
		if k.Name == cmp.Or(name, Bridge) {
			return k
		}
	}
	return NetworkKind{Name: name}
}

// A VethPair is a veth pair on a host. Its ends replace physical network interfaces of the machine.
type VethPair struct {
	Name string
	Ends [2]string // names of the interfaces
	MTU  int       `toml:"mtu" default:"1500"` // bytes; 0 means 1500
}

// routedPrefix is the prefix of the host's link ends on routed networks. No bridge has such a name,
// because the rest of a bridge name is hexadecimal. The prefix also begins like a bridge name. The
// firewall rules of every site therefore treat these links as a network of another site.
const routedPrefix = "orbr"

// RoutedPrefix returns the prefix of the host's link ends on one routed network. Firewall rules
// match the network's links by it.
func RoutedPrefix(site, network string) string {
	return routedPrefix + shortDigest(digest("routed", site, network), 4)
}

// RoutedName returns the name of the host's end of a node's link on a routed network. For key and
// network see RoutedPrefix. Argument release is Site.Key or Quarantine, as for VethName.
func RoutedName(key, release, node, network string) string {
	return RoutedPrefix(key, network) + shortDigest(digest("routed", release, node, network), 7)
}

// IsRoutedLink reports whether an interface name is that of a host's link end on a routed network.
func IsRoutedLink(name string) bool {
	return strings.HasPrefix(name, routedPrefix) && len(name) == len(routedPrefix)+11
}

// shortDigest returns n characters of a digest in base32. Each character stands for five bits.
func shortDigest(d [sha256.Size]byte, n int) string {
	return strings.ToLower(base32.StdEncoding.EncodeToString(d[:])[:n])
}
