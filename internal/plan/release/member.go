package release

import (
	"fmt"
	"maps"
	"slices"

	"orrery/internal/observe"
	"orrery/internal/plan"
	"orrery/internal/plan/stand"
	"orrery/internal/problem"
	"orrery/internal/site"
	"orrery/internal/site/spec"
)

// isGone reports whether no instance of a node exists that is live or partly live. The user has
// destroyed it in the meantime.
func isGone(hosts []observe.Host, name string) bool {
	for i := range hosts {
		for j := range hosts[i].Nodes {
			if n := &hosts[i].Nodes[j]; n.Name == name && isPartlyLive(n) {
				return false
			}
		}
	}
	return true
}

// isPartlyLive reports whether an instance is live or partly live.
func isPartlyLive(n *observe.Node) bool {
	retired := stand.AsRetired(n.Node)
	return isActive(n) || n.HoldsExclusive() || isMisplaced(n, &retired)
}

// isActive reports whether an instance does live-only work. A stopped instance does none, and before
// it starts in quarantine this work is turned off.
func isActive(n *observe.Node) bool { return n.Runs() && n.Active }

// A member is a node of the set that is switched.
type member struct {
	name  string
	host  *observe.Host
	to    *observe.Node   // the instance that must be live
	live  spec.Node       // to as it is when live
	olds  []*observe.Node // other instances that are live or partly live
	node  *site.Node      // as its release declares it
	site  *site.Site      // as its release declares it
	peers []*member       // members that must be healthy before it

	postponed bool // it is proven only when it is live

	wake, ready, start int   // its steps, or -1 if none
	retire             []int // steps that retire olds
	answers            []int // steps after which it answers in quarantine
	done               []int // steps after which it is healthy where it is live
}

// findMembers adds the members on a host to the draft.
func (d *switchPlanner) findMembers(h *observe.Host) error {
	for i := range h.Nodes {
		n := &h.Nodes[i]
		release, concerned := d.goal.To[n.Name]
		if !concerned || n.Release != release || n.State == observe.Broken {
			continue
		}
		m := &member{name: n.Name, host: h, to: n, live: stand.AsLive(n.Node), wake: -1, ready: -1, start: -1}
		if m.site = d.goal.Releases[release]; m.site == nil {
			return problem.New(problem.Failed, "release %s: its site directory as staged is missing",
				site.ReleaseName(release)).
				Try("stage it again")
		}
		m.node, _ = m.site.Node(n.Name)
		if m.node == nil {
			return problem.New(problem.Mistake, "release %s has no node %s", site.ReleaseName(release), n.Name)
		}
		for j := range h.Nodes {
			other := &h.Nodes[j]
			if other.Name != n.Name || other.Release == release {
				continue
			}
			if isPartlyLive(other) {
				m.olds = append(m.olds, other)
			}
		}
		d.members[n.Name] = m
	}
	return nil
}

// orderMembers determines which members wait for which others, and sorts the members accordingly.
func (d *switchPlanner) orderMembers(hosts []observe.Host) error {
	staying := map[string][]*site.Site{}
	for i := range hosts {
		for j := range hosts[i].Nodes {
			n := &hosts[i].Nodes[j]
			if s := d.goal.Releases[n.Release]; s != nil && d.changedMember(n.Name) == nil && isPartlyLive(n) {
				staying[n.Name] = append(staying[n.Name], s)
			}
		}
	}
	for _, m := range d.members {
		f := &dependencyFinder{switchPlanner: d, staying: staying, seen: map[*site.Node]bool{}}
		if err := f.follow(m.site, m.node); err != nil {
			return err
		}
		m.peers = f.found
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

// changedMember returns the member of a name if it must change, or nil.
func (d *switchPlanner) changedMember(name string) *member {
	if m := d.members[name]; m != nil && d.goal.mustChange(m) {
		return m
	}
	return nil
}

// A dependencyFinder finds the members for which one member waits. It also looks through nodes that do not
// change, since they work only as well as the nodes that they need.
type dependencyFinder struct {
	*switchPlanner
	// node that does not change -> the sites of its live instances
	staying map[string][]*site.Site
	seen    map[*site.Node]bool
	found   []*member
}

// follow adds the members among the nodes that a node of a site needs.
func (f *dependencyFinder) follow(s *site.Site, n *site.Node) error {
	if f.seen[n] {
		return nil
	}
	f.seen[n] = true
	peers, err := f.peers.Of(s, n, s.RolesOf(n))
	if err != nil {
		return err
	}
	for _, peer := range peers {
		if m := f.changedMember(peer.Name); m != nil {
			if !slices.Contains(f.found, m) {
				f.found = append(f.found, m)
			}
			continue
		}
		if err := f.follow(s, peer); err != nil { // as it is in quarantine
			return err
		}
		for _, declared := range f.staying[peer.Name] {
			if as, ok := declared.Node(peer.Name); ok {
				if err := f.follow(declared, as); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// isStaged reports whether the member's instance is completely in quarantine.
func (m *member) isStaged() bool { return m.to.Staged && !isActive(m.to) && !m.to.HoldsExclusive() }

// changes reports whether the member must change.
func (m *member) changes() bool {
	return len(m.olds) > 0 || isMisplaced(m.to, &m.live) || !slices.Equal(m.to.Mounts, m.live.Mounts)
}

// mustChange reports whether a member must change, even if its instance must only be configured
// again.
func (g Goal) mustChange(m *member) bool { return m.changes() || g.wasInterrupted(m) }

// wasInterrupted reports whether a switch was killed while it stopped or started services of the member's
// instance. The instance must then be configured again.
func (g Goal) wasInterrupted(m *member) bool {
	if g.Recover { // up starts and configures what does not run
		return m.to.Runs() && !m.to.Configured
	}
	return m.hasServed() && !m.to.Configured
}

// hasRelease reports whether the member's host has an instance of a release.
func (m *member) hasRelease(release int) bool {
	return slices.ContainsFunc(m.host.Nodes, func(n observe.Node) bool { return n.Name == m.name && n.Release == release })
}

// wasLive reports whether the member's instance was live before.
func (m *member) wasLive() bool {
	release, known := m.host.Releases.Former[m.name]
	return known && release == m.to.Release
}

// hasServed reports whether the member's instance was live before. Such an instance has proven itself,
// and it may lack volumes that other nodes have now, so it is not proven in quarantine. An instance
// without a release is in quarantine only because it was live before.
func (m *member) hasServed() bool {
	return m.wasLive() || lacksVolumes(&m.to.Node) || m.to.Release == 0
}

// runs reports whether the member's instance runs, or will.
func (m *member) runs() bool { return m.to.Runs() || m.wake >= 0 }

// checkReady returns an error if an instance cannot be made live now. A stopped instance, as after a boot
// of the host, is started first.
func (d *switchPlanner) checkReady(m *member) error {
	if d.goal.Recover || !m.to.Staged {
		return nil
	}
	what := ""
	switch {
	case !m.to.Configured && !d.goal.wasInterrupted(m):
		what = "is not configured"
	case !isUsable(m.to):
		what = fmt.Sprintf("is %s", m.to.State)
	case m.to.State == observe.Running && m.to.Proven != m.to.Config.Health && !m.hasServed():
		what = "has not passed its health checks"
	case m.to.Release != 0 && !m.wasLive() && d.makers.outdatedReason(m) != "":
		what = "was not staged again with the others: " + d.makers.outdatedReason(m)
	default:
		return nil
	}
	if m.to.Release == 0 {
		return problem.New(problem.Mistake, "node %s without a release %s", m.name, what).
			Try("declare its former state as a release and stage it")
	}
	return problem.New(problem.Mistake, "node %s of release %s %s", m.name, site.ReleaseName(m.to.Release), what).
		Try("orrery stage %s --release %d", m.name, m.to.Release)
}

func (m *member) steps() []int {
	all := slices.Clone(m.retire)
	if m.ready >= 0 {
		all = append(all, m.ready)
	}
	return all
}

// doesLiveOnlyWork reports whether the roles of an instance do something on live nodes only.
func (g Goal) doesLiveOnlyWork(n *observe.Node) bool {
	s := g.Releases[n.Release]
	if s == nil {
		return false
	}
	node, ok := s.Node(n.Name)
	return ok && hasLiveOnlyWork(s, node)
}

// moves returns where the links of a member's instances move.
func (m *member) moves() []plan.Move {
	var all []plan.Move
	for _, old := range m.olds {
		current, retired := withVolumesOf(old.Node, stand.AsRetired(old.Node)), stand.AsRetired(old.Node)
		if old.Runs() && isMisplaced(old, &retired) {
			all = append(all, plan.Move{Old: &current, New: &retired})
		}
	}
	current, desired := withVolumesOf(m.to.Node, m.live), m.live
	if m.runs() && isMisplaced(m.to, &desired) {
		all = append(all, plan.Move{Old: &current, New: &desired})
	}
	return all
}
