package release

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"orrery/internal/observe"
	"orrery/internal/plan"
	"orrery/internal/problem"
	"orrery/internal/site"
	"orrery/internal/site/selector"
	"orrery/internal/site/spec"
)

// A Goal says which releases shall be live.
type Goal struct {
	To       map[string]int     // node -> release; 0: none
	Releases map[int]*site.Site // the site as each release that is concerned makes it live; 0: as it is without
	Trial    *observe.Trial     // begins with the switch; nil: what is live then has proven itself
	// Back: the set returns to what was live before. There is nothing then to which rollback could return.
	Back bool
	// Recover: a switch that was interrupted is brought to its end. What does not run is put in its place and left to up.
	Recover bool
}

// Switch plans that for each node the instance of the wanted release is live, and no other. All of them are proven in quarantine
// before anything is disturbed; all links move in one step; and if a step fails, plan.Undo gives the way back.
func Switch(s *site.Site, hosts []observe.Host, g Goal) (*plan.Plan, error) {
	d := &draft{Plan: &plan.Plan{Site: s.Name}, site: s, goal: g, members: map[string]*member{}}
	for i := range hosts {
		if err := d.find(&hosts[i]); err != nil {
			return nil, err
		}
	}
	for _, name := range slices.Sorted(maps.Keys(g.To)) {
		if d.members[name] == nil && !(g.Recover && gone(hosts, name)) {
			return nil, problem.New(problem.Mistake, "node %s of release %s is not on this host", name, number(g.To[name])).
				Try("orrery stage %s --release %d", name, g.To[name])
		}
	}
	if err := d.waits(); err != nil {
		return nil, err
	}
	d.prove()
	for i := range hosts {
		if err := d.host(&hosts[i]); err != nil {
			return nil, err
		}
	}
	return d.Plan, nil
}

// gone reports whether nothing of a node is there that may be live, wholly or in part: somebody has ended it since.
func gone(hosts []observe.Host, name string) bool {
	for i := range hosts {
		for j := range hosts[i].Nodes {
			if n := &hosts[i].Nodes[j]; n.Name == name && standing(n) {
				return false
			}
		}
	}
	return true
}

// standing reports whether an instance is live, or half so.
func standing(n *observe.Node) bool {
	retired := Retired(n.Node)
	return n.Active || holds(&n.Node) || elsewhere(n, &retired)
}

type draft struct {
	*plan.Plan
	site    *site.Site
	goal    Goal
	members map[string]*member
	order   []*member // those that others wait for come first
	proofs  []int     // steps after which all of the set is proven
}

// A member is a node of the set that is switched.
type member struct {
	name  string
	host  *observe.Host
	to    *observe.Node   // that shall be live
	live  spec.Node       // it, then
	olds  []*observe.Node // that are live, or half so
	node  *site.Node      // as its release declares it
	site  *site.Site      // as its release makes it
	peers []*member       // that must be healthy before it

	wake, retire, ready, active, check int // its steps; -1: none
}

// find finds the members on a host.
func (d *draft) find(h *observe.Host) error {
	for i := range h.Nodes {
		n := &h.Nodes[i]
		release, concerned := d.goal.To[n.Name]
		if !concerned || n.Release != release || n.State == observe.Broken {
			continue
		}
		m := &member{name: n.Name, host: h, to: n, live: Live(n.Node), wake: -1, retire: -1, ready: -1, active: -1, check: -1}
		if m.site = d.goal.Releases[release]; m.site == nil {
			return problem.New(problem.Failed, "what release %s was staged from is gone", number(release)).Try("stage it again")
		}
		m.node, _ = m.site.Node(n.Name)
		if m.node == nil {
			return problem.New(problem.Mistake, "release %s has no node %s", number(release), n.Name)
		}
		for j := range h.Nodes {
			other := &h.Nodes[j]
			if other.Name != n.Name || other.Release == release {
				continue
			}
			if standing(other) {
				m.olds = append(m.olds, other)
			}
		}
		d.members[n.Name] = m
	}
	return nil
}

// waits finds out who waits for whom, and orders the members by it.
func (d *draft) waits() error {
	for _, m := range d.members {
		for _, role := range m.site.RolesOf(m.node) {
			for _, text := range role.NeedsHealthy {
				nodes, err := selector.Select(m.site, text)
				if err != nil {
					return err
				}
				for _, n := range nodes {
					if peer := d.members[n.Name]; peer != nil && peer != m {
						m.peers = append(m.peers, peer)
					}
				}
			}
		}
	}
	seen := map[*member]bool{}
	var visit func(m *member)
	visit = func(m *member) {
		if seen[m] {
			return
		}
		seen[m] = true
		for _, peer := range m.peers {
			visit(peer)
		}
		d.order = append(d.order, m)
	}
	for _, name := range slices.Sorted(maps.Keys(d.members)) {
		visit(d.members[name])
	}
	return nil
}

// staged reports whether the member's instance is wholly in quarantine.
func (m *member) staged() bool { return m.to.Staged && !m.to.Active && !holds(&m.to.Node) }

// changes reports whether anything has to be done for the member.
func (m *member) changes() bool {
	return len(m.olds) > 0 || elsewhere(m.to, &m.live) || !slices.Equal(m.to.Mounts, m.live.Mounts)
}

// cutShort reports whether a switch was killed while it stopped or started services of the member's instance.
func (d *draft) cutShort(m *member) bool { return d.goal.Recover && running(m.to) && !m.to.Configured }

// there reports whether the member's host has an instance of a release.
func (m *member) there(release int) bool {
	return slices.ContainsFunc(m.host.Nodes, func(n observe.Node) bool { return n.Name == m.name && n.Release == release })
}

// former reports whether the member's instance was live before.
func (m *member) former() bool {
	release, known := m.host.Releases.Former[m.name]
	return known && release == m.to.Release
}

// runs reports whether the member's instance runs, or will.
func (m *member) runs() bool { return running(m.to) || m.wake >= 0 }

// prove plans that every instance is healthy in quarantine, before anything is disturbed.
func (d *draft) prove() {
	if d.goal.Recover {
		return
	}
	for _, m := range d.order {
		// What was live before has proven itself, and in quarantine lacks the volumes that others have now.
		if m.staged() && m.to.Config.Health != "" && !m.former() {
			d.proofs = append(d.proofs, add(d.Plan, plan.Step{
				Kind: plan.CheckNode, Host: m.host.Name, Subject: m.name, Reason: "still healthy in quarantine", Node: &m.to.Node, Was: &m.to.Node,
			}))
		}
	}
}

// host plans what is done on one host.
func (d *draft) host(h *observe.Host) error {
	var set []*member
	for _, m := range d.order {
		if m.host == h {
			set = append(set, m)
		}
	}
	if len(set) == 0 {
		if d.goal.Recover && h.Releases.Switch != nil {
			return d.commit(h, nil)
		}
		return nil
	}
	changing := slices.DeleteFunc(slices.Clone(set), func(m *member) bool { return !m.changes() && !d.cutShort(m) })
	for _, m := range changing {
		if err := d.fit(m); err != nil {
			return err
		}
	}
	if fixed := fixedEngine(h, changing); fixed != "" {
		d.restart(h, changing, fixed)
	} else {
		d.warm(h, changing)
	}
	return d.commit(h, set)
}

// fit says why an instance cannot be made live now.
func (d *draft) fit(m *member) error {
	if d.goal.Recover || !m.to.Staged {
		return nil
	}
	what := ""
	switch {
	case m.former() && m.to.State == observe.Stopped && m.to.Configured: // since the host was booted, or because its engine wants it
		return nil
	case m.to.State != observe.Running:
		what = fmt.Sprintf("is %s", m.to.State)
	case !m.to.Configured:
		what = "is not configured"
	case m.to.Proven != m.to.Config.Health:
		what = "is not proven"
	case bereft(&m.to.Node) && !m.former():
		what = "was live and has no copy of the volumes that others have now"
	default:
		return nil
	}
	if m.to.Release == 0 {
		return problem.New(problem.Mistake, "node %s of release none %s", m.name, what).Try("declare as a release what it was, and stage that")
	}
	return problem.New(problem.Mistake, "node %s of release %s %s", m.name, number(m.to.Release), what).
		Try("orrery stage %s --release %d", m.name, m.to.Release)
}

// fixedEngine names the engine because of which the set must be stopped and started; "": none.
func fixedEngine(h *observe.Host, set []*member) string {
	engines := map[string]bool{}
	for _, m := range set {
		for _, n := range append([]*observe.Node{m.to}, m.olds...) {
			engines[n.Engine] = true
			if h.Fixed[n.Engine] {
				return n.Engine
			}
		}
	}
	if len(engines) > 1 {
		return "of more than one kind"
	}
	return ""
}

// running reports whether an instance runs, so that its links are there to be moved.
func running(n *observe.Node) bool { return n.State == observe.Running || n.State == observe.Frozen }

// warm plans a switch in which no node is stopped.
func (d *draft) warm(h *observe.Host, set []*member) {
	networks := d.networks(h, set)
	d.wake(set, networks)
	for _, m := range slices.Backward(set) { // those that wait for others let go first
		d.retire(m)
	}
	ground := slices.Concat(networks, d.proofs)
	var moves []plan.Move
	for _, m := range set {
		d.take(m)
		ground = append(ground, m.steps()...)
		moves = append(moves, m.moves()...)
	}
	moved := d.proofs
	if len(moves) > 0 {
		moved = []int{add(d.Plan, plan.Step{
			Kind: plan.MoveLinks, Host: h.Name, Subject: title(set), Reason: "release " + releases(set) + " goes live", Moves: moves, Needs: ground,
			Disturbs: names(set), Undo: "move them back",
		})}
	} else {
		moved = append(moved, ground...)
	}
	for _, m := range set {
		if m.runs() {
			d.activate(m, moved)
		}
	}
}

// wake plans that instances that were live before run, in quarantine, before anything is disturbed.
func (d *draft) wake(set []*member, networks []int) {
	if d.goal.Recover {
		return
	}
	for _, m := range set {
		if running(m.to) || !m.staged() {
			continue
		}
		s := plan.Step{Host: m.host.Name, Subject: m.name, Node: &m.to.Node, Was: &m.to.Node, Needs: networks}
		s.Kind, s.Reason, s.Undo = plan.StartNode, "release "+number(m.to.Release)+" does not run", "stop"
		s.Needs = []int{add(d.Plan, s)}
		s.Kind, s.Reason, s.Undo = plan.ConfigureNode, "boot", ""
		m.wake = add(d.Plan, s)
		d.proofs = append(d.proofs, m.wake)
	}
}

func (m *member) steps() []int {
	var all []int
	for _, n := range []int{m.retire, m.ready} {
		if n >= 0 {
			all = append(all, n)
		}
	}
	return all
}

// retire plans that what is live stops what must not run twice and lets go of its volumes.
func (d *draft) retire(m *member) {
	for _, old := range m.olds {
		if !running(old) {
			cold := Retired(old.Node)
			m.retire = add(d.Plan, plan.Step{
				Kind: plan.ReshapeNode, Host: m.host.Name, Subject: m.name, Reason: "release " + number(old.Release) + " is no longer live",
				Node: &cold, Was: &old.Node, Needs: d.proofs, Undo: "put the former interfaces and mounts back",
			})
			continue
		}
		if !old.Active && !holds(&old.Node) && !d.doesOnlyLive(old) {
			continue
		}
		retired := mounting(old.Node, Retired(old.Node))
		needs := slices.Clone(d.proofs)
		for _, other := range d.order {
			if slices.Contains(other.peers, m) && other.retire >= 0 {
				needs = append(needs, other.retire)
			}
		}
		m.retire = add(d.Plan, plan.Step{
			Kind: plan.RetireNode, Host: m.host.Name, Subject: m.name, Reason: "release " + number(old.Release) + " lets go of what is not for two",
			Node: &retired, Was: &old.Node, Needs: needs, Disturbs: []string{m.name}, Undo: "activate",
		})
	}
}

// doesOnlyLive reports whether the roles of an instance do something on live nodes only.
func (d *draft) doesOnlyLive(n *observe.Node) bool {
	s := d.goal.Releases[n.Release]
	if s == nil {
		return false
	}
	node, ok := s.Node(n.Name)
	return ok && active(s, node)
}

// take plans that an instance has its volumes in place of their copies.
func (d *draft) take(m *member) {
	needs := slices.Clone(d.proofs)
	for _, other := range d.order { // a volume may be shared by all of the set
		if other.retire >= 0 {
			needs = append(needs, other.retire)
		}
	}
	s := plan.Step{
		Host: m.host.Name, Subject: m.name, Reason: "release " + number(m.to.Release) + " takes its volumes", Was: &m.to.Node, Needs: needs,
	}
	switch {
	case !m.runs():
		cold := m.live
		s.Kind, s.Node, s.Undo = plan.ReshapeNode, &cold, "put the former interfaces and mounts back"
	case slices.Equal(m.to.Mounts, m.live.Mounts):
		return
	default:
		with := mounting(m.to.Node, m.live)
		s.Kind, s.Node, s.Undo = plan.TakeVolumes, &with, "give them back for copies"
	}
	m.ready = add(d.Plan, s)
}

// moves gives where the links of a member's instances go.
func (m *member) moves() []plan.Move {
	var all []plan.Move
	for _, old := range m.olds {
		was, is := mounting(old.Node, Retired(old.Node)), Retired(old.Node)
		if running(old) && elsewhere(old, &is) {
			all = append(all, plan.Move{Was: &was, Is: &is})
		}
	}
	was, is := mounting(m.to.Node, m.live), m.live
	if m.runs() && elsewhere(m.to, &is) {
		all = append(all, plan.Move{Was: &was, Is: &is})
	}
	return all
}

// activate plans that an instance does what only a live node does, and is healthy with it.
func (d *draft) activate(m *member, moved []int) {
	live := m.live
	needs := slices.Clone(moved)
	for _, peer := range m.peers {
		if peer.check >= 0 {
			needs = append(needs, peer.check)
		}
	}
	if d.cutShort(m) {
		m.active = add(d.Plan, plan.Step{
			Kind: plan.ConfigureNode, Host: m.host.Name, Subject: m.name, Reason: "not finished before",
			Node: &live, Was: &live, Needs: needs, Disturbs: []string{m.name},
		})
		needs = []int{m.active}
	} else if exclusive(&live) || active(m.site, m.node) {
		m.active = add(d.Plan, plan.Step{
			Kind: plan.ActivateNode, Host: m.host.Name, Subject: m.name, Reason: "release " + number(live.Release) + " is live",
			Node: &live, Was: &live, Needs: needs, Disturbs: []string{m.name}, Undo: "retire",
		})
		needs = []int{m.active}
	}
	m.check = m.lastOf(needs)
	if live.Config.Health != "" {
		m.check = add(d.Plan, plan.Step{
			Kind: plan.CheckNode, Host: m.host.Name, Subject: m.name, Reason: "prove health", Node: &live, Was: &live, Needs: needs,
		})
	}
}

func (m *member) lastOf(steps []int) int {
	if len(steps) == 0 {
		return -1
	}
	return slices.Max(steps)
}

// restart plans a switch of nodes whose links cannot be moved while they run.
func (d *draft) restart(h *observe.Host, set []*member, engine string) {
	why := "engine " + engine + " cannot move the links of running nodes: stopped and started"
	networks := d.networks(h, set)
	var still []int
	for _, m := range slices.Backward(set) {
		d.retire(m)
		for _, old := range m.olds {
			retired := Retired(old.Node)
			if running(old) {
				still = append(still, d.halt(m, old, &retired, why))
			}
		}
		live := m.live
		still = append(still, d.halt(m, m.to, &live, why))
	}
	ground := slices.Concat(networks, still)
	for _, m := range set {
		live := m.live
		start := add(d.Plan, plan.Step{
			Kind: plan.StartNode, Host: h.Name, Subject: m.name, Reason: why, Node: &live, Was: &live, Needs: ground, Undo: "stop",
		})
		d.activate(m, []int{start})
	}
}

// halt plans that an instance stands still and is put in its place; it gives the last step.
func (d *draft) halt(m *member, n *observe.Node, shall *spec.Node, why string) int {
	needs := slices.Clone(d.proofs)
	if m.retire >= 0 {
		needs = append(needs, m.retire)
	}
	if running(n) {
		needs = []int{add(d.Plan, plan.Step{
			Kind: plan.StopNode, Host: m.host.Name, Subject: m.name, Reason: why, Disturbs: []string{m.name}, Was: &n.Node, Needs: needs, Undo: "start",
		})}
	}
	return add(d.Plan, plan.Step{
		Kind: plan.ReshapeNode, Host: m.host.Name, Subject: m.name, Reason: why, Node: shall, Was: &n.Node, Needs: needs,
		Undo: "put the former interfaces and mounts back",
	})
}

// networks plans the networks that links are moved to.
func (d *draft) networks(h *observe.Host, set []*member) []int {
	used := map[string]map[string]bool{} // what it is kept under -> name
	use := func(n spec.Node) {
		key := n.Site
		if n.Staged {
			key = site.Quarantine(n.Site, n.Release)
		}
		if used[key] == nil {
			used[key] = map[string]bool{}
		}
		for _, nic := range n.NICs {
			used[key][nic.Network] = true
		}
	}
	for _, m := range set {
		use(m.live)
		if !running(m.to) {
			use(m.to.Node)
		}
		for _, old := range m.olds {
			use(Retired(old.Node))
		}
	}
	var steps []int
	for _, n := range spec.NewMaker(d.site).Networks() {
		for _, key := range slices.Sorted(maps.Keys(used)) {
			if !used[key][n.Name] {
				continue
			}
			wanted := n
			if key != n.Site {
				wanted.Site, wanted.Bridge, wanted.Gateway, wanted.NAT, wanted.Outlet = key, site.BridgeName(key, n.Name), "", false, false
			}
			s := plan.Step{
				Kind: plan.MakeNetwork, Host: h.Name, Subject: n.Name, Reason: "for " + key, Network: &wanted, Undo: "remove network " + n.Name,
			}
			if i := slices.IndexFunc(h.Networks, func(has spec.Network) bool { return has.Site == key && has.Name == n.Name }); i >= 0 {
				if h.Networks[i].Bridge == wanted.Bridge {
					continue
				}
				s.WasNetwork, s.Undo = &wanted, "" // somebody has damaged it, and mended it stays
			}
			steps = append(steps, add(d.Plan, s))
		}
	}
	return steps
}

// commit plans that the host takes down what is live.
func (d *draft) commit(h *observe.Host, set []*member) error {
	is := h.Releases
	is.Active, is.Former = maps.Clone(is.Active), maps.Clone(is.Former)
	if is.Active == nil {
		is.Active = map[string]int{}
	}
	if is.Former == nil {
		is.Former = map[string]int{}
	}
	var needs []int
	for _, m := range set {
		was, known := is.Active[m.name]
		if !known && len(m.olds) > 0 {
			was, known = m.olds[0].Release, true
		}
		switch {
		case d.goal.Back:
			delete(is.Former, m.name)
		case d.goal.Recover: // the switch came to nothing, and what rollback returns to is as it was
		case known && was != m.to.Release && m.there(was):
			is.Former[m.name] = was
		case known && was != m.to.Release: // it ended when the site was taken down: there is no way back to it
			delete(is.Former, m.name)
		}
		is.Active[m.name] = m.to.Release
		if m.check >= 0 {
			needs = append(needs, m.check)
		}
		needs = append(needs, m.steps()...)
	}
	for name, release := range d.goal.To { // somebody has ended it since; up makes it anew
		if d.members[name] == nil {
			is.Active[name] = release
			delete(is.Former, name)
		}
	}
	is.Switch, is.Trial, is.Ended = nil, d.goal.Trial, nil
	if was := h.Releases.Trial; was != nil && d.goal.Back {
		is.Ended = &observe.TrialEnd{Release: was.Release, Result: observe.Reverted, Why: "it was rolled back"}
	}
	if is.Trial == nil && !d.goal.Recover {
		is.Confirmed = slices.Clone(is.Confirmed)
		for _, m := range set {
			is.Confirm(m.to.Release)
		}
	}
	for i := range d.Steps {
		if d.Steps[i].Kind == plan.MoveLinks && d.Steps[i].Host == h.Name {
			needs = append(needs, i)
		}
	}
	committed := add(d.Plan, plan.Step{
		Kind: plan.CommitSwitch, Host: h.Name, Subject: title(set), Reason: "release " + releases(set) + " is live",
		Releases: &is, WasReleases: &h.Releases, Needs: needs, Undo: "take down what was live before",
	})
	return d.names(h, &is, committed)
}

// names plans that nodes are told of one another as they are after the switch: a release may give them other roles.
func (d *draft) names(h *observe.Host, is *observe.Releases, committed int) error {
	then := *h
	then.Releases = *is
	live, err := plan.Released(d.site, []observe.Host{then}, d.goal.Releases)
	if err != nil {
		return err
	}
	placed, err := plan.Place(live, []observe.Host{then})
	if err != nil {
		return err
	}
	digest := spec.Names(placed)
	if h.Names == "" || h.Names == digest {
		return nil
	}
	add(d.Plan, plan.Step{
		Kind: plan.WriteNames, Host: h.Name, Subject: h.Name, Reason: "roles changed", Undo: "put the former names back",
		Names: digest, WasNames: h.Names, Needs: []int{committed},
	})
	return nil
}

func names(set []*member) []string {
	var all []string
	for _, m := range set {
		all = append(all, m.name)
	}
	return all
}

func title(set []*member) string {
	if len(set) == 1 {
		return set[0].name
	}
	return fmt.Sprintf("%d nodes", len(set))
}

// releases names the releases that a set goes to.
func releases(set []*member) string {
	var all []string
	for _, m := range set {
		if text := number(m.to.Release); !slices.Contains(all, text) {
			all = append(all, text)
		}
	}
	return strings.Join(all, ", ")
}
