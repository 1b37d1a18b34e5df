package plan

import (
	"net/netip"
	"strconv"

	"orrery/internal/observe"
	"orrery/internal/site/spec"
)

// A claim is what only one node of a host can have at a time: an id, an address on a network; or, on no host in
// particular, to be the node of a name.
type claim struct{ host, what string }

func idClaim(host string, n *spec.Node) claim    { return claim{host, "id " + strconv.Itoa(n.ID)} }
func nameClaim(n *spec.Node) claim               { return claim{"", "node " + n.Name} }
func placeClaim(host string, n *spec.Node) claim { return claim{host, "place of " + n.Name} }

func addressClaim(host string, nic spec.NIC) claim {
	return claim{host, "address " + nic.Network + " " + nic.Address.String()}
}

func interfaceClaim(host, name string) claim { return claim{host, "interface " + name} }

// removeNode plans the end of a node and gives the last step. One whose data outlives it shuts down in order first; all that
// another has written goes with it, so it is not waited for.
func (d *draft) removeNode(h *observe.Host, n *observe.Node, why string, needs ...int) int {
	saves := n.Runs() && n.KeepsData()
	needs = append(needs, d.settled[n.Name]...)
	if saves {
		needs = []int{d.stop(h, n, why, needs...)}
	}
	destroy := d.add(Step{
		Kind: DestroyNode, Host: h.Name, Subject: n.Name, Reason: why, Disturbs: []string{n.Name}, Needs: needs, Was: &n.Node,
	})
	if n.Runs() && !saves {
		d.stops(h, &n.Node, destroy)
	}
	d.frees[idClaim(h.Name, &n.Node)] = destroy
	d.frees[nameClaim(&n.Node)] = destroy
	return destroy
}

// stop plans the end of a running node, in the way that the goal asks for.
func (d *draft) stop(h *observe.Host, n *observe.Node, why string, needs ...int) int {
	step := d.add(Step{
		Kind: d.goal.Ending.Kind(), Host: h.Name, Subject: n.Name, Reason: why, Disturbs: []string{n.Name}, Needs: needs,
		Was: &n.Node, Undo: "start", Timeout: d.goal.Ending.Timeout,
	})
	d.stops(h, &n.Node, step)
	return step
}

// stops notes what a node sets free when it stops.
func (d *draft) stops(h *observe.Host, n *spec.Node, step int) {
	d.leaves(h, n, n.NICs, step)
}

// leaves notes what a node sets free when some of its interfaces go, with its place on their networks.
func (d *draft) leaves(h *observe.Host, n *spec.Node, nics []spec.NIC, step int) {
	d.frees[placeClaim(h.Name, n)] = step
	for _, nic := range nics {
		d.frees[addressClaim(h.Name, nic)] = step
		if n.Takes(nic) {
			d.frees[interfaceClaim(h.Name, nic.Parent)] = step
		}
	}
}

// comes lets a step wait until what interfaces of a node need is free.
func (d *draft) comes(step int, host string, n *spec.Node, nics []spec.NIC) {
	for _, nic := range nics {
		d.claims(step, addressClaim(host, nic))
		if n.Takes(nic) {
			d.claims(step, interfaceClaim(host, nic.Parent))
		}
	}
}

// settle lets steps wait for those that set free what they claim: a node's creation for the end of one with its id,
// its start for the stop of one with its address, the end of a network for the stop of those that were on it.
func (d *draft) settle() {
	for n, s := range d.Steps {
		switch s.Kind {
		case CreateNode:
			d.claims(n, idClaim(s.Host, s.Node), nameClaim(s.Node))
		case StartNode:
			d.comes(n, s.Host, s.Node, s.Node.NICs)
		case LimitNode: // of which an interface may come
			d.comes(n, s.Host, s.Node, spec.Without(s.Node.NICs, s.Was.NICs))
		case MakeNetwork:
			if s.Network.Parent != "" {
				d.claims(n, interfaceClaim(s.Host, s.Network.Parent))
			}
			if s.Network.Kind == spec.VethPair && s.WasNetwork == nil {
				d.vacated(n, s.Network)
			}
		case RemoveNetwork:
			d.vacated(n, s.Network)
			for _, other := range d.hosts[s.Host].Networks { // what is on a veth pair goes first
				if s.Network.Joins(other.Parent) {
					d.claims(n, claim{s.Host, "network " + other.Name})
				}
			}
		}
	}
}

// vacated lets a step wait until nodes that were on a network stand still.
func (d *draft) vacated(step int, on *spec.Network) {
	host := d.Steps[step].Host
	for i := range d.hosts[host].Nodes {
		if was := &d.hosts[host].Nodes[i].Node; stands(was, on) {
			d.claims(step, placeClaim(host, was))
		}
	}
}

func (d *draft) claims(n int, all ...claim) {
	for _, c := range all {
		if step, ok := d.frees[c]; ok && step != n {
			d.Steps[n].Needs = append(d.Steps[n].Needs, step)
		}
	}
}

// overlap reports whether two networks would answer at the same addresses, or have the same interface.
func overlap(a, b *spec.Network) bool {
	if a.Parent != "" && a.Parent == b.Parent || a.Joins(b.Ends[0]) || a.Joins(b.Ends[1]) {
		return true
	}
	x, err1 := netip.ParsePrefix(a.Subnet)
	y, err2 := netip.ParsePrefix(b.Subnet)
	return err1 == nil && err2 == nil && x.Overlaps(y)
}
