package kind

import (
	"os"

	"github.com/vishvananda/netlink"

	"orrery/internal/network/ends"
	"orrery/internal/observe"
	"orrery/internal/plan/clash"
	"orrery/internal/site"
	"orrery/internal/site/spec"
)

// A bridge is the default kind. Other kinds embed it and override what differs.
type bridge struct{}

func (bridge) HasNodes() bool { return true }

func (bridge) Check(n spec.Network) error {
	if n.Kind == site.Bridge { // never written explicitly, since one network would then have two possible marks
		return unknown{}.Check(n)
	}
	return nil
}

func (bridge) CheckHost(n spec.Network, marked []spec.Network) error {
	if p := clash.KindConflict(&n, marked); p != nil {
		return p
	}
	return nil
}

func (bridge) LinkType() string { return "bridge" }

func (bridge) NewLink(n spec.Network, attrs netlink.LinkAttrs) netlink.Link {
	// A bridge takes the smallest MTU of its ports until its own MTU is changed once. So it starts
	// with another value, and is changed before it is set up.
	attrs.MTU = n.MTU - 1
	return &netlink.Bridge{LinkAttrs: attrs}
}

func (bridge) IsOn(netlink.Link, spec.Network) bool { return true }

func (bridge) Make(spec.Network) error { return nil }

func (bridge) Remove(spec.Network) error { return nil }

func (bridge) Observe(*observe.Network, netlink.Link) {}

func (bridge) Users(_ spec.Network, ports int) (int, error) { return ports, nil }

func (bridge) Attach(nic spec.NIC, inner string, space *os.File) error {
	return ends.MakePair(nic, site.Bridge, inner, space)
}
