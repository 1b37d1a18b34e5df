package observe

import "orrery/internal/site/spec"

// A Network is a network as its host has it.
type Network struct {
	spec.Network
	Drift []NetworkDrift `json:"drift,omitempty"`
}

// A NetworkDrift is what of a network is not as it was made, and no field of its spec can say.
type NetworkDrift string

// What can become of a network.
const (
	LinkMissing   NetworkDrift = "its link is missing" // but not its rules
	LinkForeign   NetworkDrift = "its link is of another kind"
	LinkDown      NetworkDrift = "its link is down"
	RulesChanged  NetworkDrift = "rules changed"
	PortsOpen     NetworkDrift = "ports not guarded"
	RouterChanged NetworkDrift = "router changed"
	WallsChanged  NetworkDrift = "rules between hosts changed"
	JointChanged  NetworkDrift = "link to other hosts changed"
	EndForeign    NetworkDrift = "an end is not its own"
	EndChanged    NetworkDrift = "mtu of an end changed"
	EndsGone      NetworkDrift = "both ends are gone" // of a veth pair; nodes may have taken them
)

// Drifted notes something.
func (n *Network) Drifted(what NetworkDrift) { n.Drift = append(n.Drift, what) }

// Is reports whether it is as specified.
func (n *Network) Is(wanted *spec.Network) bool { return len(n.Drift) == 0 && n.Network == *wanted }

// An Address is one by which a host may be reached.
type Address struct {
	Prefix string `json:"prefix"` // with the length of its subnet's
	Link   string `json:"link"`
	MTU    int    `json:"mtu"` // bytes that the interface takes at a time
}
