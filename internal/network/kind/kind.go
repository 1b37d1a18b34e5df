package kind

import (
	"os"

	"github.com/vishvananda/netlink"

	"orrery/internal/observe"
	"orrery/internal/problem"
	"orrery/internal/site"
	"orrery/internal/site/spec"
)

// A Kind makes the networks of one kind. The caller holds the lock of the host's networks.
type Kind interface {
	// HasNodes reports whether nodes can be on such a network. If not, it has no subnet and no
	// rules.
	HasNodes() bool
	// Check returns an error if no network can be made from the spec, before anything is changed.
	Check(n spec.Network) error
	// CheckHost returns an error if this host cannot have the network in addition to the marked ones.
	CheckHost(n spec.Network, marked []spec.Network) error
	// LinkType returns netlink's name for the type of the network's link.
	LinkType() string
	// NewLink returns the link of a network, not yet added.
	NewLink(n spec.Network, attrs netlink.LinkAttrs) netlink.Link
	// IsOn reports whether the network's link is on the correct parent interface.
	IsOn(link netlink.Link, n spec.Network) bool
	// Make makes everything of a network except its link and its rules. The link exists and is
	// marked. A later call completes what a killed one began.
	Make(n spec.Network) error
	// Remove removes what Make made.
	Remove(n spec.Network) error
	// Observe records what differs from what Make made.
	Observe(n *observe.Network, link netlink.Link)
	// Users returns how many nodes' links are on a network whose own link has the given number of
	// ports.
	Users(n spec.Network, ports int) (int, error)
	// Attach makes the link of a container's interface, see the function Attach.
	Attach(nic spec.NIC, inner string, space *os.File) error
}

// Kinds maps the names of site.NetworkKinds and veth pairs to their kinds.
var Kinds = map[string]Kind{
	site.Bridge:    bridge{},
	site.Routed:    routed{},
	site.Macvlan:   macvlan{},
	site.Exclusive: exclusive{},
	"sriov":        pool{},
	spec.VethPair:  vethPair{},
}

// Of returns the kind with a name, where "" is the default kind. For an unknown name, it returns a
// kind whose Check fails.
func Of(name string) Kind {
	if k, ok := Kinds[site.KindOf(name).Name]; ok {
		return k
	}
	return unknown{}
}

type unknown struct{ bridge }

func (unknown) Check(n spec.Network) error {
	return problem.New(problem.Unable, "network %s: kind %q is unknown", n.Name, n.Kind)
}

// IsLinkType reports whether the link of some kind of network can be of a type.
func IsLinkType(name string) bool {
	for _, k := range Kinds {
		if k.LinkType() == name {
			return true
		}
	}
	return false
}

// Attach makes the link of a container's interface. The inner end gets the given name in an
// otherwise empty network namespace, from which the engine moves it into the container. The host's
// end, if the kind has one, is put on its network. An interface of the host that the node takes is
// moved into the namespace itself; it keeps its name, or gets inner if it is a virtual function. The
// caller must guard the port before (network.AddAntiSpoof).
func Attach(nic spec.NIC, name, inner string, space *os.File) error {
	err := Of(name).Attach(nic, inner, space)
	if err != nil {
		return problem.New(problem.Failed, "link of interface %s cannot be created", nic.Name).At(nic.Network).Because(err)
	}
	return nil
}
