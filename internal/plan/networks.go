package plan

import (
	"fmt"
	"slices"
	"strings"

	"orrery/internal/observe"
	"orrery/internal/plan/clash"
	"orrery/internal/plan/overlay"
	"orrery/internal/problem"
	"orrery/internal/site"
	"orrery/internal/site/spec"
)

// A networkPlanner plans the networks of nodes.
type networkPlanner struct {
	*planBuilder
	all      []spec.Network // of the site
	spans    overlay.Spans  // the networks that are on several hosts
	relinked map[claim]bool // the networks whose links are recreated
	refused  problem.List   // the networks that hosts cannot have
}

// newNetworkPlanner determines how networks are joined between hosts. It must be called before nodes
// are made by the spec.Builder, since their MTUs depend on that.
func newNetworkPlanner(d *planBuilder, hosts []observe.Host) (*networkPlanner, error) {
	spans, warnings, err := overlay.Join(d.site, d.maker.Key(), hosts, d.Homes)
	d.maker.MTUs = spans.MTUs()
	d.Warnings = append(d.Warnings, warnings...)
	return &networkPlanner{planBuilder: d, all: d.maker.Networks(), spans: spans, relinked: map[claim]bool{}}, err
}

// planNetworks plans the networks that nodes are on, and the veth pairs below them. It returns the steps by
// network.
func (d *networkPlanner) planNetworks(h *observe.Host, nodes []*site.Node, ready []int) (map[string]int, error) {
	steps := map[string]int{}
	used := d.usedNetworks(nodes)
	d.addJoined(h, used)
	for _, wanted := range d.all { // veth pairs come first
		if !used[wanted.Name] {
			continue
		}
		wanted = d.withPublished(h, d.spans.On(h.Name, wanted))
		s := Step{
			Kind: MakeNetwork, Host: h.Name, Subject: wanted.Name, Reason: "new", Needs: ready,
			Network: &wanted, Undo: "remove network " + wanted.Name,
		}
		veth, anew := d.vethPairStep(wanted.Parent, steps)
		if i := slices.IndexFunc(h.Networks, func(n observe.Network) bool { return n.Name == wanted.Name }); i >= 0 {
			old := &h.Networks[i]
			if (old.Matches(&wanted) || IsPassedThrough(h, old, &wanted)) && !anew {
				continue
			}
			if s.Reason = networkDifference(old, &wanted); s.Reason == "" {
				s.Reason = "its veth pair is recreated"
			}
			if anew || replacesLink(old, &wanted) {
				removed, err := d.planUnlink(h, &old.Network, s.Reason)
				if err != nil {
					return nil, err
				}
				s.Needs = append(slices.Clone(s.Needs), removed)
			} else {
				s.OldNetwork, s.Undo, s.Disturbs = &old.Network, "restore network "+wanted.Name,
					cutOffNodes(h, &old.Network, &wanted)
			}
		}
		if p := clash.CheckPlanned(h, &wanted, d.all); p != nil {
			d.refused = append(d.refused, p)
		}
		if anew {
			s.Needs = append(slices.Clone(s.Needs), veth)
		}
		steps[wanted.Name] = d.add(s)
		d.checkPublished(h, &wanted)
		if freed := networkClaim(h.Name, wanted.Name); !d.relinked[freed] {
			d.frees[freed] = steps[wanted.Name]
		}
	}
	for _, step := range steps { // subnets and interfaces that only one network can have
		for i := range h.Networks {
			if other := &h.Networks[i]; other.Name != d.Steps[step].Subject && overlap(&other.Network, d.Steps[step].Network) {
				d.claim(step, networkClaim(h.Name, other.Name))
			}
		}
	}
	return steps, nil
}

// planUnlink plans the removal of a network whose link must be replaced, after the nodes on it are
// stopped.
func (d *networkPlanner) planUnlink(h *observe.Host, old *spec.Network, why string) (int, error) {
	for i := range h.Nodes {
		if n := &h.Nodes[i]; n.Runs() && isOn(&n.Node, old) && !d.goal.selects(n.Name) {
			return 0, problem.New(problem.Mistake, "network %s cannot be recreated while node %s uses it", old.Name,
				n.Name).
				Try("run orrery up for all nodes, or stop %s", n.Name)
		}
	}
	step := d.removeNetwork(h, old, why, nil)
	d.frees.addNetwork(h, old, step)
	d.relinked[networkClaim(h.Name, old.Name)] = true
	return step, nil
}

// usedNetworks returns the names of the networks that nodes are on, and of the veth pairs that the networks
// or the nodes use.
func (d *networkPlanner) usedNetworks(nodes []*site.Node) map[string]bool {
	used, interfaces := map[string]bool{}, map[string]bool{}
	for _, n := range nodes {
		for _, nic := range n.NICs {
			used[nic.Network], interfaces[nic.Interface] = true, true
		}
	}
	for _, n := range d.all {
		if used[n.Name] {
			interfaces[n.Parent] = true
		}
	}
	for _, n := range d.all {
		if n.Kind == spec.VethPair && (interfaces[n.Ends[0]] || interfaces[n.Ends[1]]) {
			used[n.Name] = true
		}
	}
	return used
}

// addJoined adds networks of a host that are or were joined with other hosts and that selected nodes
// use on any host. Each host must know where all of these nodes are. It also adds networks whose
// ports of the host still lead to selected nodes that are on another host now.
func (d *networkPlanner) addJoined(h *observe.Host, used map[string]bool) {
	if d.goal.Nodes == nil {
		return // each network is either used or removed
	}
	for i := range h.Networks {
		n := &h.Networks[i]
		used[n.Name] = used[n.Name] || d.publishesStray(h, &n.Network) ||
			(d.spans[n.Name] != nil || n.VXLAN != spec.VXLAN{}) &&
				slices.ContainsFunc(d.site.Nodes, func(node site.Node) bool {
					return d.goal.selects(node.Name) && slices.Contains(node.Networks(), n.Name)
				})
	}
}

// vethPairStep returns the step that recreates the veth pair of an interface, or false if no step
// does.
func (d *networkPlanner) vethPairStep(name string, steps map[string]int) (step int, anew bool) {
	for _, step := range steps {
		if s := d.Steps[step]; s.Network.HasEnd(name) && s.OldNetwork == nil {
			return step, true
		}
	}
	return 0, false
}

// stepsFor returns the steps that make the networks of a node and the veth pairs below them.
func (d *networkPlanner) stepsFor(n *spec.Node, steps map[string]int) (all []int) {
	for _, nic := range n.NICs {
		if step, ok := steps[nic.Network]; ok {
			all = append(all, step)
		}
		if step, ok := d.vethPairStep(nic.Parent, steps); ok {
			all = append(all, step)
		}
	}
	return all
}

// replacesLink reports whether changing a network replaces the link that nodes are attached to.
func replacesLink(old *observe.Network, wanted *spec.Network) bool {
	return old.Kind != wanted.Kind || old.Parent != wanted.Parent && !site.KindOf(wanted.Kind).VirtualFunctions ||
		old.Ends != wanted.Ends ||
		wanted.Kind == spec.VethPair &&
			len(old.Drift) > 0
}

// IsPassedThrough reports whether a veth pair is as desired, except that neither end is on the host
// because running nodes have taken them.
func IsPassedThrough(h *observe.Host, old *observe.Network, wanted *spec.Network) bool {
	return wanted.Kind == spec.VethPair && old.Network == *wanted &&
		slices.Equal(old.Drift, []observe.NetworkDrift{observe.EndsGone}) &&
		slices.ContainsFunc(h.Nodes, func(n observe.Node) bool { return n.Runs() && hasEndOf(&n.Node, wanted) })
}

// isOn reports whether a node is on a network. On a veth pair, that includes nodes that have
// taken an end of it or are on one.
func isOn(n *spec.Node, on *spec.Network) bool {
	return slices.ContainsFunc(n.NICs, func(nic spec.NIC) bool {
		return nic.Network == on.Name || on.HasEnd(nic.Parent) && n.KindOf(nic) == nic.Kind
	})
}

// hasEndOf reports whether a node has taken an end of a veth pair.
func hasEndOf(n *spec.Node, veth *spec.Network) bool {
	return slices.ContainsFunc(n.NICs, func(nic spec.NIC) bool { return veth.HasEnd(nic.Parent) && n.TakesInterface(nic) })
}

// cutOffNodes returns the running nodes that cannot reach their gateway for a while when a network
// changes.
func cutOffNodes(h *observe.Host, old, wanted *spec.Network) []string {
	if old.Gateway == wanted.Gateway {
		return nil
	}
	var names []string
	for i := range h.Nodes {
		n := &h.Nodes[i]
		if n.State == observe.Running &&
			slices.ContainsFunc(n.NICs, func(nic spec.NIC) bool { return nic.Network == old.Name }) {
			names = append(names, n.Name)
		}
	}
	return names
}

func networkDifference(old *observe.Network, wanted *spec.Network) string {
	var all []string
	if changed := spec.DescribeChanges(networkParts(&old.Network), networkParts(wanted)); changed != "" {
		all = append(all, changed)
	}
	for _, what := range old.Drift {
		all = append(all, string(what))
	}
	return strings.Join(all, ", ")
}

func networkParts(n *spec.Network) spec.PartDigests {
	return spec.PartDigests{
		"subnet": n.Subnet, "gateway": n.Gateway, "nat": fmt.Sprint(n.NAT), "mtu": fmt.Sprint(n.MTU),
		"router":          fmt.Sprint(n.Router),
		"published ports": n.Publish, "active services": n.Answers,
		"host": n.Host, "spoof": fmt.Sprint(n.Spoof), "protocols": n.Protocols, "metadata": fmt.Sprint(n.Metadata),
		"VXLAN number": fmt.Sprint(n.VXLAN.ID), "VXLAN address": n.VXLAN.Local, "hosts": n.VXLAN.Hosts(),
		"nodes on other hosts": n.VXLAN.Peers, "key of this host": n.VXLAN.Key,
		"uplink": n.Uplink.String(), "kind": n.Kind, "interface": n.Parent, "ends": strings.Join(n.Ends[:], " "),
	}
}
