package observe

import "orrery/internal/site/spec"

// A Network is a network as it exists on its host.
type Network struct {
	spec.Network
	Drift []NetworkDrift `json:"drift,omitempty"`
}

// A NetworkDrift is a difference between a network and its desired state that no field of its spec
// can express.
type NetworkDrift string

// The kinds of network drift.
const (
	LinkMissing         NetworkDrift = "its link is missing" // but its rules exist
	LinkForeign         NetworkDrift = "its link is of another kind"
	LinkDown            NetworkDrift = "its link is down"
	RulesChanged        NetworkDrift = "rules changed"
	PortsOpen           NetworkDrift = "ports not guarded"
	RouterChanged       NetworkDrift = "router changed"
	FiltersChanged      NetworkDrift = "rules between hosts changed"
	InterconnectChanged NetworkDrift = "link to other hosts changed"
	EndForeign          NetworkDrift = "an end is not its own"
	EndChanged          NetworkDrift = "mtu of an end changed"
	EndsGone            NetworkDrift = "both ends are gone" // both ends of a veth pair; nodes may have taken them
)

// AddDrift adds a drift.
func (n *Network) AddDrift(what NetworkDrift) { n.Drift = append(n.Drift, what) }

// Matches reports whether the network matches its spec.
func (n *Network) Matches(wanted *spec.Network) bool {
	return len(n.Drift) == 0 && n.Network == *wanted
}

// An Address is an address of the host.
type Address struct {
	Prefix string `json:"prefix"` // with the prefix length of its subnet
	Link   string `json:"link"`
	MTU    int    `json:"mtu"` // MTU of the interface in bytes
}
