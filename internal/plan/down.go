package plan

import (
	"maps"
	"slices"
	"strconv"

	"orrery/internal/observe"
	"orrery/internal/plan/place"
	"orrery/internal/problem"
	"orrery/internal/site"
	"orrery/internal/site/spec"
)

// Down plans the removal of nodes. If all nodes are selected, it also removes everything else of
// the site. With goal.Volumes, it removes persistent data too.
func Down(s *site.Site, hosts []observe.Host, goal Goal) *Plan {
	cut := resolveMoves(s, hosts, goal)
	hosts = cut.After
	d := newPlanBuilder(s, hosts, goal)
	finishMoves(d, cut)
	for i := range hosts {
		discardArrivals(d, &hosts[i])
		downHost(d, &hosts[i])
	}
	return d.sorted()
}

// discardArrivals plans the removal of data received for nodes that are on no host.
func discardArrivals(d *planBuilder, h *observe.Host) {
	for _, a := range h.IncomingMoves {
		if d.goal.selects(a.Name) {
			n := &spec.Node{Site: d.maker.Key(), Name: a.Name, ID: a.ID}
			d.add(Step{Kind: DiscardNode, Host: h.Name, Peer: a.From, Subject: a.Name, Old: n, Reason: "requested",
				Disturbs: []string{a.Name}})
		}
	}
}

func downHost(d *planBuilder, h *observe.Host) {
	var gone []int
	for i := range h.Nodes {
		if n := &h.Nodes[i]; d.goal.selects(n.Name) {
			gone = append(gone, d.removeNode(h, n, "requested"))
		}
	}
	if d.goal.Volumes {
		for _, v := range h.Volumes {
			if v.Node == "" && d.goal.Nodes != nil || v.Node != "" && !d.goal.selects(v.Node) {
				continue
			}
			d.add(Step{Kind: RemoveVolume, Host: h.Name, Subject: volumeTitle(v.Name, v.Node), Reason: "requested", Needs: gone,
				Path: v.Path})
		}
	}
	if d.goal.Nodes != nil {
		unpublish(d, h, gone)
		return
	}
	last := gone
	for _, vethPairs := range []bool{false, true} { // networks on a veth pair are removed before the pair
		needs := last
		for i := range h.Networks {
			if n := &h.Networks[i].Network; (n.Kind == spec.VethPair) == vethPairs {
				last = append(last, d.removeNetwork(h, n, "requested", needs))
			}
		}
	}
	if h.Names != "" {
		last = append(last, d.forgetNames(h, "requested", gone))
	}
	live := slices.Collect(maps.Values(h.Releases.RestartTargets()))
	for _, release := range h.Releases.Staged {
		if !slices.Contains(live, release) { // the next up makes the live releases again
			last = append(last, d.add(Step{
				Kind: ForgetRelease, Host: h.Name, Subject: strconv.Itoa(release), Reason: "requested", Needs: gone,
				Release: release,
			}))
		}
	}
	if len(last) > 0 {
		d.add(Step{Kind: RestoreHost, Host: h.Name, Subject: h.Name, Reason: "unless another site is up", Needs: last})
	}
}

// Stop plans that nodes are stopped and keep everything they have.
func Stop(s *site.Site, hosts []observe.Host, goal Goal) *Plan {
	p, _ := planPower(s, hosts, goal, func(d *planBuilder, h *observe.Host, n *observe.Node) error {
		if n.Runs() {
			d.stop(h, n, "requested")
		}
		return nil
	})
	return p
}

// Start plans that existing nodes run as they are. It builds, changes and configures nothing. It
// resumes a machine that was paused because its host had no room, and restarts a node whose state
// is unusable.
func Start(s *site.Site, hosts []observe.Host, goal Goal) (*Plan, error) {
	return planPower(s, hosts, goal, func(d *planBuilder, h *observe.Host, n *observe.Node) error {
		if why := n.RestartReason(); why != "" {
			return start(d, h, n, []int{d.stop(h, n, why)})
		}
		if n.State != observe.Stopped && !n.Starved {
			return nil
		}
		return start(d, h, n, nil)
	})
}

// Restart plans that existing nodes start again as they are. Running nodes are stopped first.
func Restart(s *site.Site, hosts []observe.Host, goal Goal) (*Plan, error) {
	return planPower(s, hosts, goal, func(d *planBuilder, h *observe.Host, n *observe.Node) error {
		if n.State == observe.Broken {
			return nil
		}
		var ended []int
		if n.Runs() {
			ended = []int{d.stop(h, n, "requested")}
		}
		return start(d, h, n, ended)
	})
}

// planPower plans that existing nodes are started or stopped, each as set plans it.
func planPower(s *site.Site, hosts []observe.Host, goal Goal,
	set func(*planBuilder, *observe.Host, *observe.Node) error) (*Plan, error) {
	hosts = inScope(s, hosts)
	d := newPlanBuilder(s, hosts, goal)
	for i := range hosts {
		for j := range hosts[i].Nodes {
			n := &hosts[i].Nodes[j]
			if !goal.selects(n.Name) {
				continue
			}
			if err := set(d, &hosts[i], n); err != nil {
				return nil, err
			}
		}
	}
	return d.sorted(), nil
}

// start plans that a stopped node, or one that an earlier step stops, runs as it is and is healthy.
func start(d *planBuilder, h *observe.Host, n *observe.Node, needs []int) error {
	if err := place.CheckEngine(h, n.Name, n.Engine); err != nil {
		return err
	}
	if lost := missingNetwork(h, &n.Node); lost != "" {
		return problem.New(problem.Failed,
			"node %s cannot start: network %s does not exist on this host, for example after a reboot",
			n.Name, lost).At(h.Name).
			Try("orrery up creates the networks and starts the nodes")
	}
	start := d.add(Step{Kind: StartNode, Host: h.Name, Subject: n.Name, Reason: "requested", Needs: needs,
		Node: &n.Node,
		Old:  &n.Node, Undo: "stop"})
	if n.Config.Health != "" {
		d.add(Step{Kind: CheckNode, Host: h.Name, Subject: n.Name, Reason: "check health", Node: &n.Node, Old: &n.Node,
			Needs: []int{start}})
	}
	return nil
}

// missingNetwork returns a network whose bridge a node needs and the host lacks, or "" if none is
// missing. The start of the node puts a link that is on no bridge, or was deleted, on the bridge of
// its network.
func missingNetwork(h *observe.Host, n *spec.Node) string {
	for _, nic := range n.NICs {
		if n.LinkKind(nic).HasHostEnds() && !slices.ContainsFunc(h.Networks, func(on observe.Network) bool {
			home := on.Bridge == nic.Bridge || nic.Bridge == "" && on.Name == nic.Network
			return home && !slices.Contains(on.Drift, observe.LinkMissing)
		}) {
			return nic.Network
		}
	}
	return ""
}
