package network

import (
	"github.com/vishvananda/netlink"

	"orrery/internal/host"
	"orrery/internal/host/shape"
	"orrery/internal/network/ends"
	"orrery/internal/observe"
	"orrery/internal/problem"
	"orrery/internal/site/spec"
	"orrery/internal/site/traffic"
)

// SetTraffic sets the limits of traffic of a node's links, while the node runs. Links get their limits
// when they are made, before the first frame, so links that do not exist are ignored.
func SetTraffic(n *spec.Node) error {
	for _, nic := range n.NICs {
		if !n.LinkKind(nic).HasHostEnds() {
			continue
		}
		link, err := netlink.LinkByName(nic.HostIfName)
		if ends.IsNotFound(err) {
			continue
		}
		if err == nil {
			err = shape.Set(link, nic.Traffic)
		}
		if err != nil && !ends.IsGone(err) {
			return problem.New(problem.Failed, "node %s: traffic on network %s cannot be limited", n.Name, nic.Network).
				At(nic.HostIfName).Because(err).Try("orrery doctor shows what this host lacks")
		}
	}
	return nil
}

// ObserveTraffic sets the limits of traffic that are in force for the links of running nodes.
func ObserveTraffic(nodes []observe.Node) error {
	var state *shape.State
	for i := range nodes {
		n := &nodes[i]
		if !n.Runs() {
			continue
		}
		for k := range n.NICs {
			nic := &n.NICs[k]
			if !n.LinkKind(*nic).HasHostEnds() {
				continue
			}
			err := error(nil)
			if state == nil {
				state, err = shape.ReadState()
			}
			if err == nil {
				nic.Traffic, err = state.InForce(nic.HostIfName, nic.Traffic)
			}
			if err != nil {
				return problem.New(problem.Failed, "node %s: read the limits of its traffic", n.Name).Because(err)
			}
		}
	}
	return nil
}

// SweepTraffic removes what limited the links of nodes that have ended on their own.
func SweepTraffic() error {
	links, err := ends.ListConsistent(netlink.LinkList)
	if err != nil {
		return problem.New(problem.Failed, "list the host's links").Because(err)
	}
	return shape.Sweep(links)
}

// LacksForTraffic returns why the kernel cannot limit traffic in this way, or the zero Missing. It
// tries in a new network namespace.
func LacksForTraffic(l traffic.Limits) (none observe.Missing) {
	space, err := host.NewNetNS()
	if err == nil {
		defer space.Close()
		err = host.InNetNS(space, func() error { return shape.Try(l) })
	}
	if err == nil {
		return none
	}
	what := "traffic cannot be limited"
	if l.Delays() {
		what = "frames cannot be delayed or lost"
	}
	return observe.Missing{What: what + ": " + problem.Truncate(err.Error(), 200),
		Cure: "use a kernel with these modules: sch_htb, ifb, cls_u32, act_mirred, and sch_netem for latency, jitter and loss"}
}
