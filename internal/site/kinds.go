package site

import (
	"cmp"
	"crypto/sha256"
	"encoding/base32"
	"strings"
)

// The kinds of networks.
const (
	Bridge    = "bridge"    // a bridge of the host's, with a veth pair for each node: what "" means, too
	Routed    = "routed"    // a veth pair for each node and no bridge: the host routes from one to the other
	Macvlan   = "macvlan"   // interfaces on top of one of the host's
	Exclusive = "exclusive" // each node takes an interface of the host's
)

// A NetworkKind is what networks of one kind have in common. Rules and plans ask for that, and not
// for the name of a kind; package network/kind knows how a host makes a network of each kind.
type NetworkKind struct {
	Name string
	// Bridged: the links of nodes are ports of a bridge of the network's own. So each port can be held
	// to what its node may send, a switch moves it to another bridge while the node runs, and what
	// Orrery makes joins the bridges of several hosts.
	Bridged bool
	// Routed: the link to each node stands by itself, and the host routes from one to the other, for
	// which it needs the gateway. Nothing joins such a network with that of another host.
	Routed bool
	// OnInterface: the network is on an interface of the host, which no other network has.
	OnInterface bool
	// TakesInterfaces: each node takes an interface of the host, which nothing else has meanwhile.
	TakesInterfaces bool
	// WithoutHost: the host has no address on it, and passes on nothing for its nodes.
	WithoutHost bool
}

// Wired reports whether what hosts have joins the nodes of several hosts.
func (k NetworkKind) Wired() bool { return k.OnInterface || k.TakesInterfaces }

// HasHostEnds reports whether the host has an end of the link to each node. Virtual machines have
// no other links.
func (k NetworkKind) HasHostEnds() bool { return k.Bridged || k.Routed }

// Kinds are the kinds of networks that a site file may name, the usual one first.
var Kinds = []NetworkKind{
	{Name: Bridge, Bridged: true},
	{Name: Routed, Routed: true},
	{Name: Macvlan, OnInterface: true},
	{Name: Exclusive, TakesInterfaces: true, WithoutHost: true},
}

// KindNames returns the names of all kinds.
func KindNames() []string {
	var names []string
	for _, k := range Kinds {
		names = append(names, k.Name)
	}
	return names
}

// KindOf returns the kind with a name, where "" is the usual one. A kind that does not exist has no property.
func KindOf(name string) NetworkKind {
	for _, k := range Kinds {
		if k.Name == cmp.Or(name, Bridge) {
			return k
		}
	}
	return NetworkKind{Name: name}
}

// A VethPair is a veth pair of a host whose ends stand in for network interfaces of the machine.
type VethPair struct {
	Name string
	Ends [2]string // names of interfaces
	MTU  int       `toml:"mtu" default:"1500"` // bytes; 0: 1500
}

// routedPrefix begins the names of the host's ends of links on routed networks. No bridge has such
// a name, for the rest of that is hexadecimal; but the rules of every site take what begins as the
// name of a bridge does for a network that is not theirs.
const routedPrefix = "orbr"

// RoutedPrefix begins the names of the host's ends of all links on a routed network: rules tell by
// it what is of the network.
func RoutedPrefix(site, network string) string {
	return routedPrefix + short(digest("routed", site, network), 4)
}

// RoutedName returns the name of the host's end of the link that joins a node to a routed network.
// For key and network see RoutedPrefix; release is Site.Key or Quarantine, as for VethName.
func RoutedName(key, release, node, network string) string {
	return RoutedPrefix(key, network) + short(digest("routed", release, node, network), 7)
}

// IsRouted reports whether the name of an interface is that of the host's end of a link on a routed network.
func IsRouted(name string) bool {
	return strings.HasPrefix(name, routedPrefix) && len(name) == len(routedPrefix)+11
}

// short returns so many characters for a digest, each of which stands for five of its bits.
func short(d [sha256.Size]byte, n int) string {
	return strings.ToLower(base32.StdEncoding.EncodeToString(d[:])[:n])
}
