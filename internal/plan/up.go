package plan

import (
	"slices"

	"orrery/internal/observe"
	"orrery/internal/plan/kernel"
	"orrery/internal/plan/orphan"
	"orrery/internal/plan/place"
	"orrery/internal/plan/rotation"
	"orrery/internal/plan/stand"
	"orrery/internal/plan/vfs"
	"orrery/internal/site"
	"orrery/internal/site/inventory"
	"orrery/internal/site/spec"
)

// Up plans the steps that make the hosts match the site: every node exists, runs, is configured and
// is healthy, and nothing remains that is not declared.
func Up(s *site.Site, hosts []observe.Host, goal Goal) (*Plan, error) {
	released, err := stand.Released(s, hosts, goal.Releases)
	if err != nil {
		return nil, err
	}
	cut := resolveMoves(released, hosts, goal)
	hosts = cut.After
	placed, err := place.Assign(released, hosts, goal.nodeNames()...)
	if err != nil {
		return nil, err
	}
	hosts = inScope(s, hosts)
	d, err := newSitePlanner(placed, hosts, goal)
	if err != nil {
		return nil, err
	}
	finishMoves(d.planBuilder, cut) // a received node is made for the networks as the site declares them
	byHost, belongs := map[string][]*site.Node{}, map[string][]*site.Node{}
	for i := range placed.Nodes {
		n := &placed.Nodes[i]
		belongs[n.Host] = append(belongs[n.Host], n)
		if goal.selects(n.Name) && d.isLocated(n) && !d.isExcluded(n) {
			byHost[n.Host] = append(byHost[n.Host], n)
		}
	}
	d.Warnings = append(d.Warnings, warnUncertain(d.planInput)...)
	d.Warnings = append(d.Warnings, warnPlacement(d.planInput, hosts)...)
	d.Warnings = append(d.Warnings, warnLargeMTU(d.planInput, d.maker.MTUs)...)
	for i := range hosts { // on all hosts, before a node is recreated on another host
		d.removeStrays(&hosts[i], belongs[hosts[i].Name], d.Homes)
	}
	var waiting []waitingNode
	for i := range hosts {
		if hosts[i].Unknown {
			continue
		}
		w, err := d.upHost(&hosts[i], byHost[hosts[i].Name])
		if err != nil {
			return nil, err
		}
		waiting = append(waiting, w...)
	}
	if err := d.networks.refused.OrNil(); err != nil {
		return nil, err
	}
	if err := d.awaitPeers(waiting); err != nil {
		return nil, err
	}
	orderByClaims(d.planBuilder)
	for i := range hosts {
		if goal.Nodes == nil && !hosts[i].Unknown {
			d.Orphans = append(d.Orphans, orphan.All(s, &hosts[i], goal.Releases)...)
		}
	}
	p := d.sorted()
	if assignBatches(d.planBuilder) {
		p = d.sorted()
	}
	return p, nil
}

// A sitePlanner plans the steps that bring the nodes of a site up.
type sitePlanner struct {
	*planBuilder
	networks *networkPlanner
	layers   *layerPlanner
	names    string         // digest of the names file of the nodes
	last     map[string]int // node -> its last step

	generations rotation.Generations // of the secrets, when the plan has run
}

// newSitePlanner returns a draft for a site in which every node has a host.
func newSitePlanner(placed *site.Site, hosts []observe.Host, goal Goal) (*sitePlanner, error) {
	d := newPlanBuilder(placed, hosts, goal)
	d.Homes = placed.HostByNode()
	networks, err := newNetworkPlanner(d, hosts)
	if err != nil {
		return nil, err
	}
	generations, err := rotation.Observed(hosts, goal.Raised)
	return &sitePlanner{
		planBuilder: d, networks: networks, layers: newLayerPlanner(d), names: spec.NamesDigest(placed),
		last: map[string]int{}, generations: generations,
	}, err
}

// A waitingNode is a node with a configure step that waits until other nodes are healthy.
type waitingNode struct {
	node *site.Node
	step int
}

// upHost plans one host and the selected nodes on it.
func (d *sitePlanner) upHost(h *observe.Host, nodes []*site.Node) ([]waitingNode, error) {
	existing := make(map[string]*observe.Node, len(h.Nodes))
	for i := range h.Nodes {
		existing[h.Nodes[i].Name] = &h.Nodes[i]
	}
	ready := d.prepare(h, len(nodes) > 0)
	networks, err := d.networks.planNetworks(h, nodes, ready)
	if err != nil {
		return nil, err
	}
	if step, ok := d.writeNames(h, nodes); ok {
		ready = append(ready, step)
	}
	d.Warnings = append(d.Warnings, warnVMs(h, nodes)...)
	if err := place.CheckFitTogether(nodes, h); err != nil {
		return nil, err
	}
	if err := vfs.Check(d.site, nodes, h); err != nil {
		return nil, err
	}
	var wait []waitingNode
	for _, n := range nodes {
		if err := place.CheckFit(d.site, n, h); err != nil {
			return nil, err
		}
		wanted, err := d.makerOf(n).Node(n)
		if err != nil {
			return nil, err
		}
		wanted.Config.Secrets = d.generations.OfNode(d.makerOf(n).Site, n)
		u := &nodePlanner{
			change: change{h, n, wanted, existing[n.Name]}, up: d,
			before: slices.Concat(ready, d.settled[n.Name]), startNeeds: d.networks.stepsFor(wanted, networks),
		}
		if u.has != nil {
			if why := u.incompatibility(); why != "" {
				u.before = append(u.before, d.removeNode(h, u.has, why, append(d.layers.planNode(h, n), ready...)...))
				u.has = nil
			} else if err := stand.DiskChange(&u.has.Node, wanted); err != nil {
				return nil, err
			}
		}
		if step, ok := u.upNode(); ok {
			wait = append(wait, waitingNode{n, step})
		}
	}
	return wait, nil
}

// prepare plans the kernel settings that a host needs to run nodes, unless needed is false.
func (d *sitePlanner) prepare(h *observe.Host, needed bool) []int {
	if !needed {
		return nil
	}
	forward := len(d.site.Active) > 0 ||
		slices.ContainsFunc(d.site.Networks, func(n site.Network) bool { return n.NAT }) ||
		slices.ContainsFunc(d.site.Nodes, func(n site.Node) bool { return n.Host == h.Name && len(n.Publish) > 0 })
	lacks := kernel.Missing(h.Settings, forward)
	if len(lacks) == 0 {
		return nil
	}
	return []int{d.add(Step{
		Kind: PrepareHost, Host: h.Name, Subject: h.Name,
		Reason: spec.DescribeChanges(pick(h.Settings, lacks), lacks), Undo: "down restores the previous settings",
		Settings: lacks,
	})}
}

func pick(all map[string]string, keys spec.PartDigests) spec.PartDigests {
	some := spec.PartDigests{}
	for key := range keys {
		some[key] = all[key]
	}
	return some
}

// writeNames plans the step that updates what nodes know of one another, if that has changed.
func (d *sitePlanner) writeNames(h *observe.Host, nodes []*site.Node) (int, bool) {
	// In quarantine, nodes get the names of the others when they are made. The recorded names are
	// those of the live nodes.
	if len(nodes) == 0 || d.site.Stage != 0 {
		return 0, false
	}
	reason, undo := "names, addresses or roles changed", "restore the previous names"
	switch {
	case h.Names == "":
		reason, undo = "new", "remove them"
	case h.Names != d.names:
	case h.HostNames != "" && h.HostNames != d.hostNames(h):
		reason = "the hosts file of the host has other names"
	default:
		return 0, false
	}
	return d.add(Step{
		Kind: WriteNames, Host: h.Name, Subject: h.Name, Reason: reason, Undo: undo, Names: d.names, OldNames: h.Names,
		Needs: d.arrivals[h.Name], // arriving nodes bring their SSH host keys
	}), true
}

// hostNames returns the digest of the names that the hosts file of a host must have.
func (d *sitePlanner) hostNames(h *observe.Host) string {
	var here []*site.Node
	for i := range d.site.Nodes {
		if d.site.Nodes[i].Host == h.Name {
			here = append(here, &d.site.Nodes[i])
		}
	}
	return inventory.HostNamesDigest(inventory.HostNames(d.site, here...))
}
