package release

import (
	"maps"
	"slices"

	"orrery/internal/observe"
	"orrery/internal/plan"
	"orrery/internal/problem"
	"orrery/internal/site"
)

// Stage plans that nodes of a release are built, booted and proven in quarantine. It also returns
// the site of the quarantine from which they are made, as twin.Quarantine does. declared is the
// release as the site directory declares it now. kept is the release as it was staged before, or
// nil if it was not. Nodes to which rollback returns are not touched, see RollbackNodes.
func Stage(declared, kept *site.Site, hosts []observe.Host, goal plan.Goal) (*plan.Plan, *site.Site, error) {
	for i := range hosts {
		for _, n := range declared.Nodes {
			if live, known := hosts[i].Releases.Active[n.Name]; known && live == declared.Stage && selects(goal, n.Name) {
				return nil, nil, problem.New(problem.Mistake, "release %d of node %s is live and cannot be changed",
					declared.Stage,
					n.Name).
					Try("declare the change as another release and stage it")
			}
		}
	}
	of, err := quarantineSite(declared, kept, hosts)
	if err != nil {
		return nil, nil, err
	}
	spared := RollbackNodes(declared, hosts, goal)
	goal.Nodes = withStaged(hosts, goal.Nodes, declared.Stage)
	if len(spared) > 0 {
		goal.Nodes = goalWithout(of, goal, spared)
	}
	p, err := plan.Up(of, hosts, goal)
	return p, of, err
}

func selects(goal plan.Goal, node string) bool { return goal.Nodes == nil || goal.Nodes[node] }

// RollbackNodes returns the nodes of a release, sorted, that exist for a rollback in the state in which
// they were live. If they were staged again, rollback might have nothing to return to.
func RollbackNodes(staged *site.Site, hosts []observe.Host, goal plan.Goal) []string {
	var all []string
	for i := range hosts {
		for j := range hosts[i].Nodes {
			n := &hosts[i].Nodes[j]
			former, known := hosts[i].Releases.Former[n.Name]
			_, declared := staged.Node(n.Name)
			if known && former == staged.Stage && n.Release == former && declared && selects(goal, n.Name) && isIntact(n) {
				all = append(all, n.Name)
			}
		}
	}
	slices.Sort(all)
	return all
}

// isIntact reports whether an instance in quarantine is complete, so that a switch can use it as it
// is.
func isIntact(n *observe.Node) bool {
	return n.Staged && n.Configured && isUsable(n)
}

// isUsable reports whether an instance is neither half made nor frozen.
func isUsable(n *observe.Node) bool { return n.State == observe.Running || n.State == observe.Stopped }

// goalWithout returns the nodes of a goal except some.
func goalWithout(s *site.Site, goal plan.Goal, some []string) map[string]bool {
	left := map[string]bool{}
	for _, n := range s.Nodes {
		left[n.Name] = selects(goal, n.Name) && !slices.Contains(some, n.Name)
	}
	return left
}

// AbandonRollback returns the records of releases after rollback to one of them is given up for the selected
// nodes.
func AbandonRollback(r observe.Releases, number int, goal plan.Goal) observe.Releases {
	r.Former = maps.Clone(r.Former)
	maps.DeleteFunc(r.Former, func(name string, former int) bool { return former == number && selects(goal, name) })
	return r
}

// withStaged adds to the selected nodes, or nil for all, those that are already in the release's
// quarantine. The copy of the site directory is for all of them.
func withStaged(hosts []observe.Host, chosen map[string]bool, number int) map[string]bool {
	if chosen == nil {
		return nil
	}
	all := maps.Clone(chosen)
	for i := range hosts {
		for j := range hosts[i].Nodes {
			if n := &hosts[i].Nodes[j]; n.Staged && n.Release == number {
				all[n.Name] = true
			}
		}
	}
	return all
}

// PreviousReleases returns for each node the release that was live before the current one.
func PreviousReleases(r observe.Releases, nodes []string) (map[string]int, error) {
	to := map[string]int{}
	for _, name := range nodes {
		former, known := r.Former[name]
		if !known {
			return nil, problem.New(problem.Mistake, "node %s has no former release to return to", name).
				Try("orrery release ls lists the releases")
		}
		to[name] = former
	}
	return to, nil
}

// Retained returns the releases that must not be removed: those that are live, those to which rollback
// or the end of a trial returns, and the last confirmed one.
func Retained(r observe.Releases) map[int]bool {
	kept := map[int]bool{}
	for _, group := range bindings(&r) {
		for release := range maps.Values(group) {
			kept[release] = true
		}
	}
	if n := len(r.Confirmed); n > 0 {
		kept[r.Confirmed[n-1]] = true
	}
	return kept
}

// Prune plans the removal of all releases except those that must be kept and the newest of the
// others.
func Prune(s *site.Site, hosts []observe.Host, newest int) *plan.Plan {
	p := &plan.Plan{Site: s.Name}
	for i := range hosts {
		h := &hosts[i]
		kept := Retained(h.Releases)
		numbers := slices.Clone(h.Releases.Staged)
		for j := range h.Nodes {
			if n := &h.Nodes[j]; n.Staged {
				numbers = append(numbers, n.Release)
			} else {
				kept[n.Release] = true
			}
		}
		slices.Sort(numbers)
		left := newest
		for _, release := range slices.Backward(slices.Compact(numbers)) {
			switch {
			case kept[release]:
			case left > 0:
				left--
			default:
				remove(p, s.Key(), h, release)
			}
		}
	}
	return p
}

// remove plans the removal of one release from a host.
func remove(p *plan.Plan, key string, h *observe.Host, release int) {
	const why = "no longer kept"
	var gone []int
	for i := range h.Nodes {
		if n := &h.Nodes[i]; n.Staged && n.Release == release {
			gone = append(gone, add(p, plan.Step{
				Kind: plan.DestroyNode, Host: h.Name, Subject: n.Name, Reason: why, Old: &n.Node,
			}))
		}
	}
	for i := range h.Networks {
		if n := &h.Networks[i]; n.Site == site.Quarantine(key, release) {
			add(p, plan.Step{Kind: plan.RemoveNetwork, Host: h.Name, Subject: n.Name, Reason: why, Network: &n.Network,
				Needs: gone})
		}
	}
	if release != 0 {
		add(p, plan.Step{Kind: plan.ForgetRelease, Host: h.Name, Subject: site.ReleaseName(release), Reason: why,
			Release: release, Needs: gone})
	}
}

// add appends a step to a plan and returns its number.
func add(p *plan.Plan, s plan.Step) int {
	s.N = len(p.Steps)
	s.Needs = slices.Clone(s.Needs)
	slices.Sort(s.Needs)
	s.Needs = slices.Compact(s.Needs)
	p.Steps = append(p.Steps, &s)
	return s.N
}
