package kind

import (
	"os"

	"github.com/vishvananda/netlink"

	"orrery/internal/observe"
	"orrery/internal/problem"
	"orrery/internal/site"
	"orrery/internal/site/spec"
)

// A Kind is how networks of a kind are made. The caller holds the lock of the host's networks.
type Kind interface {
	// HasNodes reports whether nodes can be on such a network. If not, it has no subnet, and no rules
	// are about it.
	HasNodes() bool
	// Check finds what would make no network, before anything is touched.
	Check(n spec.Network) error
	// Refuse says why this host cannot have a network beside those that are marked.
	Refuse(n spec.Network, marked []spec.Network) error
	// LinkType is what netlink calls the link of a network.
	LinkType() string
	// NewLink returns the link of a network, to be added.
	NewLink(n spec.Network, attrs netlink.LinkAttrs) netlink.Link
	// IsOn reports whether such a link is on what its network is to be on.
	IsOn(link netlink.Link, n spec.Network) bool
	// Make makes what a network has besides its link, which is there and marked, and its rules. A
	// later call completes what a killed one has begun.
	Make(n spec.Network) error
	// Remove removes that.
	Remove(n spec.Network) error
	// Observe notes what is not as it was made.
	Observe(n *observe.Network, link netlink.Link)
	// Users counts the links of nodes on a network whose own link has so many ports.
	Users(n spec.Network, ports int) (int, error)
	// Attach makes the link of a container's interface; see the function of that name.
	Attach(nic spec.NIC, inner string, space *os.File) error
}

// Kinds are all kinds, by the names that site.Kinds have, and veth pairs.
var Kinds = map[string]Kind{
	site.Bridge:    bridge{},
	site.Routed:    routed{},
	site.Macvlan:   macvlan{},
	site.Exclusive: exclusive{},
	spec.VethPair:  vethPair{},
}

// Of returns the kind with a name, where "" is the usual one. One that does not exist has no
// networks: Check says so.
func Of(name string) Kind {
	if k, ok := Kinds[site.KindOf(name).Name]; ok {
		return k
	}
	return unknown{}
}

type unknown struct{ bridge }

func (unknown) Check(n spec.Network) error {
	return problem.New(problem.Unable, "network %s: kind %q is not known", n.Name, n.Kind)
}

// IsLinkType reports whether the link of some network can be of a type.
func IsLinkType(name string) bool {
	for _, k := range Kinds {
		if k.LinkType() == name {
			return true
		}
	}
	return false
}

// Attach makes the link of a container's interface: the inner end, under some name, in a network
// namespace in which nothing else is, from where the engine moves it into the container; the host's
// end, if the kind has one, where it belongs. An interface of the host that the node takes is moved
// there itself and keeps its name. The port is to be guarded before (network.Guard).
func Attach(nic spec.NIC, name, inner string, space *os.File) error {
	err := Of(name).Attach(nic, inner, space)
	if err != nil {
		return problem.New(problem.Failed, "link of the interface %s cannot be made", nic.Name).At(nic.Network).Because(err)
	}
	return nil
}
