package plan

import (
	"fmt"
	"maps"
	"slices"

	"orrery/internal/observe"
	"orrery/internal/plan/handover"
	"orrery/internal/plan/place"
	"orrery/internal/plan/stand"
	"orrery/internal/plan/vfs"
	"orrery/internal/problem"
	"orrery/internal/site"
	"orrery/internal/site/spec"
	"orrery/internal/text/humanize"
)

// MoveNodes plans that nodes move to other hosts with everything they have. Their instances of
// other releases move along. moves maps each node to its new host.
//
// What a node has written is copied while it runs. Then the node stops, the rest is copied, its
// host gives it away, and the other host receives it. Nodes that ran start again. Nothing else is
// changed. An interrupted move is finished first. Nodes that are already on their new host are left
// alone.
func MoveNodes(s *site.Site, hosts []observe.Host, goal Goal, moves map[string]string) (*Plan, error) {
	goal.Nodes = map[string]bool{}
	for name := range moves {
		goal.Nodes[name] = true
	}
	released, err := stand.Released(s, hosts, goal.Releases)
	if err != nil {
		return nil, err
	}
	cut := resolveMoves(released, hosts, goal)
	all, err := nodeMoves(released, inScope(s, cut.After), moves)
	if err != nil {
		return nil, err
	}
	before := byName(hosts)
	hosts = hostsAfterMove(inScope(s, cut.After), all)
	placed, err := place.Assign(released, hosts)
	if err != nil {
		return nil, err
	}
	up, err := newSitePlanner(placed, hosts, goal)
	if err != nil {
		return nil, err
	}
	m := &movePlanner{
		planBuilder: up.planBuilder, up: up, before: before, fixed: released.HostByNode(), made: map[string][]networkStep{},
		came: map[string][]int{},
	}
	cut.All = slices.DeleteFunc(cut.All, func(h handover.Handover) bool { // the copy continues with the received data
		return h.Resolution == handover.Discard &&
			slices.ContainsFunc(all, func(j nodeMove) bool { return j.has.ID == h.ID && j.from == h.From && j.to == h.To })
	})
	finishMoves(m.planBuilder, cut)
	m.Warnings = append(m.Warnings, warnMTUChange(m.planInput)...)
	with, err := companions(m.planInput, cut.After, before, moves)
	if err != nil {
		return nil, err
	}
	if err := m.planMoves(all, with); err != nil {
		return nil, err
	}
	if err := up.networks.refused.OrNil(); err != nil {
		return nil, err
	}
	return m.sorted(), nil
}

// MoveBack plans, after a failed run of a plan of MoveNodes, that each of its nodes runs on its
// current host. If the node was not given away, that is the host that it should have left.
func MoveBack(s *site.Site, hosts []observe.Host, goal Goal, failed *Plan) (*Plan, error) {
	moves := map[string]string{}
	for _, step := range failed.Steps {
		if step.Kind == CopyNode {
			moves[step.Subject] = ""
		}
	}
	return MoveNodes(s, hosts, goal, moves)
}

// A nodeMove is the move of one node.
type nodeMove struct {
	node     string
	has      observe.Node // current state
	from, to string       // hosts
	ran      bool         // it runs, or ran until this move was interrupted
}

// nodeMoves returns the journeys of nodes that are not on their new host, in the order in which the
// site declares them.
func nodeMoves(s *site.Site, hosts []observe.Host, moves map[string]string) ([]nodeMove, error) {
	for _, name := range slices.Sorted(maps.Keys(moves)) {
		if _, ok := s.Node(name); !ok {
			return nil, problem.New(problem.Usage, "no node is called %q", name).Try("orrery ls lists the nodes")
		}
	}
	var all []nodeMove
	for i := range s.Nodes {
		n := &s.Nodes[i]
		to, asked := moves[n.Name]
		if !asked {
			continue
		}
		j, err := nodeMoveOf(n, hosts, to)
		if err != nil {
			return nil, err
		}
		if j.from != j.to {
			all = append(all, *j)
		}
	}
	return all, nil
}

// nodeMoveOf returns the journey of a node. Its hosts are the same if the node is already there.
func nodeMoveOf(n *site.Node, hosts []observe.Host, to string) (*nodeMove, error) {
	var names []string
	j, unknown := &nodeMove{node: n.Name, to: to}, ""
	for i := range hosts {
		h := &hosts[i]
		names = append(names, h.Name)
		if h.Unknown {
			unknown = h.Name
		}
		if current, ok := h.Node(n.Name); ok {
			j.has, j.from, j.ran = *current, h.Name, current.Runs() || current.Resume
		}
	}
	if to == "" { // it stays where it is
		j.to = j.from
		return j, nil
	}
	target := slices.Index(names, to)
	switch {
	case target < 0:
		return nil, problem.New(problem.Usage, "no host is called %q", to).Try("known: %s", humanize.List(names, 12))
	case j.from == to:
		return j, nil
	case hosts[target].Unknown:
		return nil, problem.New(problem.Unable, "node %s cannot move to host %s, whose state is unknown", n.Name, to).
			Try("check the host: orrery host check")
	case hosts[target].Drained != nil:
		return nil, problem.New(problem.Unable, "node %s cannot move to host %s, which is drained", n.Name, to).
			Try("orrery host undrain %s, or choose another host", to)
	case n.Host != "" && n.Host != to:
		return nil, problem.New(problem.Mistake,
			"node %s is declared on host %s, where the next up would recreate it", n.Name, n.Host).At("site.toml").
			Try("write host = %q for it, then orrery move %s --to %s; or remove host, and it stays on its current host", to,
				n.Name, to)
	case j.from == "" && unknown != "":
		return nil, problem.New(problem.Unable, "node %s may be on host %s, whose state is unknown", n.Name, unknown).
			Try("check the host: orrery host check")
	case j.from == "":
		return nil, problem.New(problem.Failed, "node %s does not exist on any host", n.Name).
			Try("orrery up %s creates it; host = %q in site.toml determines the host", n.Name, to)
	}
	return j, nil
}

// hostsAfterMove returns the hosts as they are when the nodes have arrived, before they start.
func hostsAfterMove(hosts []observe.Host, all []nodeMove) []observe.Host {
	after := slices.Clone(hosts)
	for i := range after {
		h := &after[i]
		h.Nodes = slices.DeleteFunc(slices.Clone(h.Nodes), func(n observe.Node) bool {
			return slices.ContainsFunc(all, func(j nodeMove) bool { return j.node == n.Name && j.from == h.Name })
		})
		for _, j := range all {
			if j.to == h.Name {
				n := j.has
				n.State, n.Proven, n.Resume = observe.Stopped, "", j.ran
				h.Nodes = append(h.Nodes, n)
			}
		}
	}
	return after
}

// A movePlanner drafts moves.
type movePlanner struct {
	*planBuilder
	up     *sitePlanner
	before map[string]*observe.Host // the hosts as observed
	fixed  map[string]string        // node -> host that the site declares for it
	made   map[string][]networkStep // host -> steps that make its networks before any node stops
	// The steps that tell hosts where a network's nodes are. They run when the moving nodes are
	// stopped.
	joins []networkStep
	lefts []int            // the steps with which nodes have left their hosts
	came  map[string][]int // node -> steps that receive its companions
}

// A networkStep is the step that makes a network. The name "" stands for all networks.
type networkStep struct {
	network string
	step    int
}

// networkSteps returns the steps that make networks of a node.
func networkSteps(n *site.Node, all []networkStep) (steps []int) {
	for _, one := range all {
		if one.network == "" || slices.Contains(n.Networks(), one.network) {
			steps = append(steps, one.step)
		}
	}
	return steps
}

func (m *movePlanner) planMoves(all []nodeMove, with []*companion) error {
	for i := range all {
		if err := all[i].check(m.planInput, m.before[all[i].from]); err != nil {
			return err
		}
	}
	var names []string
	var hosts []observe.Host
	for _, j := range all {
		names = append(names, j.node)
	}
	for _, h := range m.hosts {
		hosts = append(hosts, *h)
	}
	if err := place.CheckMoves(m.site, hosts, names, func(node string) bool { return m.fixed[node] != "" }); err != nil {
		return err
	}
	for _, host := range slices.Sorted(maps.Keys(m.hosts)) {
		if err := m.planNetworks(m.hosts[host]); err != nil {
			return err
		}
	}
	m.moveCompanions(with)
	for i := range all {
		if err := m.planMove(&all[i]); err != nil {
			return err
		}
	}
	for _, name := range slices.Sorted(maps.Keys(m.goal.Nodes)) {
		if !slices.ContainsFunc(all, func(j nodeMove) bool { return j.node == name }) {
			m.planResume(name)
		}
	}
	orderByClaims(m.planBuilder)
	for _, host := range slices.Sorted(maps.Keys(m.hosts)) {
		m.removeUnusedNetworks(m.hosts[host])
		m.updateNames(m.hosts[host])
	}
	return nil
}

// check returns an error if a node is tied to its host, or if the other host cannot have it.
func (j *nodeMove) check(b *planInput, from *observe.Host) error {
	n, _ := b.site.Node(j.node)
	wanted, err := b.makerOf(n).Node(n)
	if err != nil {
		return err
	}
	to := b.hosts[j.to]
	no := func(cure, format string, args ...any) error {
		return problem.New(problem.Unable, "node %s cannot move to host %s: %s", n.Name, j.to,
			fmt.Sprintf(format, args...)).Try("%s", cure)
	}
	if why, cure := place.MoveObstacle(b.makerOf(n).Site, n); why != "" {
		return no(cure, "%s", why)
	}
	upFirst := "orrery up " + n.Name + " first, then move"
	switch {
	case j.has.State == observe.Broken:
		return no(upFirst, "it is incomplete")
	case j.has.ID != wanted.ID:
		return no(upFirst, "it has the id %d but is declared with %d", j.has.ID, wanted.ID)
	case j.has.Engine != wanted.Engine:
		return no(upFirst, "it has the engine %s but is declared with %s", j.has.Engine, wanted.Engine)
	}
	if why := stand.LayerChange(&j.has.Node, wanted); why != "" {
		return no(upFirst, "it differs from its declaration and would be recreated: %s", why)
	}
	if err := stand.DiskChange(&j.has.Node, wanted); err != nil {
		return err
	}
	for _, h := range []*observe.Host{from, to} {
		if h.Engines != nil && !h.Engines[n.Engine].Move {
			return no("move it by orrery backup and orrery restore", "the engine %s cannot move nodes", n.Engine)
		}
	}
	return place.CheckFit(b.site, n, to)
}

// planNetworks plans the networks of a host. Missing networks are made before nodes stop. Changes of
// existing networks are done when the moving nodes are stopped.
func (m *movePlanner) planNetworks(h *observe.Host) error {
	if h.Unknown {
		return nil
	}
	nodes := selectedNodesOn(m.site, h.Name, m.goal)
	ready := m.up.prepare(h, len(nodes) > 0)
	for _, step := range ready {
		m.made[h.Name] = append(m.made[h.Name], networkStep{"", step})
	}
	used := m.up.networks.usedNetworks(nodes)
	for _, wanted := range m.up.networks.all {
		wanted = m.up.networks.spans.On(h.Name, wanted)
		if i := slices.IndexFunc(h.Networks, func(n observe.Network) bool { return n.Name == wanted.Name }); i >= 0 &&
			used[wanted.Name] && replacesLink(&h.Networks[i], &wanted) {
			return problem.New(problem.Mistake,
				"network %s of host %s differs from its declaration and would be recreated",
				wanted.Name, h.Name).Try("orrery up first, then move")
		}
	}
	steps, err := m.up.networks.planNetworks(h, nodes, ready)
	if err != nil {
		return err
	}
	for _, network := range slices.Sorted(maps.Keys(steps)) {
		one := networkStep{network, steps[network]}
		if m.Steps[one.step].OldNetwork == nil {
			m.made[h.Name] = append(m.made[h.Name], one)
		} else {
			m.joins = append(m.joins, one)
		}
	}
	return nil
}

// selectedNodesOn returns the nodes of a host in a placed site that are selected.
func selectedNodesOn(s *site.Site, host string, goal Goal) (nodes []*site.Node) {
	for i := range s.Nodes {
		if n := &s.Nodes[i]; n.Host == host && goal.selects(n.Name) {
			nodes = append(nodes, n)
		}
	}
	return nodes
}

// planMove plans the move of one node.
func (m *movePlanner) planMove(j *nodeMove) error {
	n, _ := m.site.Node(j.node)
	wanted, err := m.makerOf(n).Node(n)
	if err != nil {
		return err
	}
	to, from, current, ready := m.hosts[j.to], m.before[j.from], &j.has, networkSteps(n, m.made[j.to])
	if err := vfs.Check(m.site, []*site.Node{n}, to); err != nil {
		return err
	}
	joins := networkSteps(n, m.joins)
	halt := func(copied int) int {
		if current.Runs() {
			copied = m.stop(from, current, "moves to host "+j.to, append(slices.Clone(ready), copied)...)
			m.Steps[copied].Peer = j.to
		}
		for _, join := range joins {
			m.Steps[join].Needs = append(m.Steps[join].Needs, copied)
		}
		return copied
	}
	last := m.planTransfer(j, wanted, "", append(m.up.layers.planNode(to, n), m.came[j.node]...), halt)
	m.arrivals[j.to] = append(m.arrivals[j.to], last)
	if j.ran {
		arrival := change{to, n, wanted, receivedNode(wanted, current)}
		u := &nodePlanner{change: arrival, up: m.up, before: append(ready, last), startNeeds: joins}
		last = u.resume(last)
	}
	m.lefts = append(m.lefts, cleanUpMoved(m.planBuilder, j.from, j.to, &current.Node, last))
	return nil
}

// planTransfer plans the transfer of a node to another host, which makes it as wanted. Its data is copied
// while it runs, and the rest once halt has stopped it. travel returns the step that receives the
// node.
func (m *movePlanner) planTransfer(j *nodeMove, wanted *spec.Node, why string, needs []int,
	halt func(copied int) int) int {
	step := func(kind Kind, host, peer, reason, undo string, needs ...int) int {
		return m.add(Step{
			Kind: kind, Host: host, Peer: peer, Subject: j.node, Reason: why + reason, Undo: undo, Needs: needs,
			Node: wanted, Old: &j.has.Node, Runs: j.ran, Configured: j.has.Configured, Active: j.has.Active,
		})
	}
	needs = append(needs, m.settled[j.node]...)
	copied := step(CopyNode, j.to, j.from, "moves here from host "+j.from, "remove the copy", needs...)
	last := step(SendNode, j.to, j.from, "the rest, from host "+j.from, "", halt(copied))
	last = step(HandOverNode, j.from, j.to, "to host "+j.to, "take it back", last)
	return step(ReceiveNode, j.to, j.from, "from host "+j.from, "remove it, and host "+j.from+" owns it again", last)
}

// planResume plans that a node whose move was interrupted runs again.
func (m *movePlanner) planResume(name string) {
	n, ok := m.site.Node(name)
	if !ok {
		return
	}
	host := m.hosts[n.Host]
	current, ok := host.Node(name)
	if !ok || current.Runs() || !current.Resume {
		return
	}
	if wanted, err := m.makerOf(n).Node(n); err == nil {
		u := &nodePlanner{
			change: change{host, n, wanted, receivedNode(wanted, current)}, up: m.up,
			before: slices.Concat(networkSteps(n, m.made[n.Host]), m.settled[n.Name]), startNeeds: networkSteps(n, m.joins),
		}
		if last := u.resume(-1); last >= 0 {
			m.arrivals[n.Host] = append(m.arrivals[n.Host], last)
		}
	}
}

// resume plans that a node runs. It returns the last step, or other if there is none.
func (u *nodePlanner) resume(other int) int {
	u.upNode()
	if len(u.steps) == 0 {
		return other
	}
	return u.steps[len(u.steps)-1]
}

// receivedNode returns a node in its state after it was received: made as declared, with the
// configuration that it had.
func receivedNode(wanted *spec.Node, old *observe.Node) *observe.Node {
	node := &observe.Node{Node: *wanted, State: observe.Stopped, Configured: old.Configured, Active: old.Active,
		Resume: true}
	node.Config = old.Config
	return node
}

// removeUnusedNetworks plans the removal of networks that a host no longer needs, since their nodes
// are on other hosts.
func (m *movePlanner) removeUnusedNetworks(h *observe.Host) {
	if h.Unknown {
		return
	}
	here := selectedNodesOn(m.site, h.Name, Goal{})
	used := m.up.networks.usedNetworks(here)
	for i := range h.Networks {
		n := &h.Networks[i].Network
		concerned := func(node site.Node) bool {
			return m.goal.selects(node.Name) && slices.Contains(node.Networks(), n.Name)
		}
		stays := func(existing observe.Node) bool { return isOn(&existing.Node, n) }
		if used[n.Name] || !slices.ContainsFunc(m.site.Nodes, concerned) || slices.ContainsFunc(h.Nodes, stays) {
			continue
		}
		needs := slices.Clone(m.lefts)
		for _, join := range m.joins {
			if s := m.Steps[join.step]; s.Host == h.Name && s.Subject == n.Name {
				needs = append(needs, join.step)
			}
		}
		m.removeNetwork(h, n, "no node of this host uses it any more", needs)
	}
	if h.Names != "" && len(here) == 0 && len(h.Nodes) == 0 {
		m.forgetNames(h, "no node is on this host any more", m.lefts)
	}
}

// updateNames plans to write the names on a host when nodes have arrived, whose SSH host keys are there
// now, or when nodes are on other hosts than before.
func (m *movePlanner) updateNames(h *observe.Host) {
	came := slices.Clone(m.arrivals[h.Name])
	reason := "nodes moved here"
	if len(came) == 0 {
		if h.Unknown || h.Names == m.up.names || len(h.Nodes) == 0 {
			return
		}
		reason, came = "nodes are on other hosts", slices.Concat(slices.Collect(maps.Values(m.arrivals))...)
	}
	for _, s := range m.Steps { // these steps write the names of their nodes first
		if s.Host == h.Name && s.ForNode() && slices.Contains([]Kind{StartNode, ConfigureNode, CheckNode}, s.Kind) {
			came = append(came, s.N)
		}
	}
	m.add(Step{
		Kind: WriteNames, Host: h.Name, Subject: h.Name, Reason: reason, Undo: "restore the previous names",
		Needs: came, Names: m.up.names, OldNames: h.Names,
	})
}
