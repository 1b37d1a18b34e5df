package release

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"orrery/internal/observe"
	"orrery/internal/plan"
	"orrery/internal/plan/place"
	"orrery/internal/plan/stand"
	"orrery/internal/problem"
	"orrery/internal/site"
	"orrery/internal/site/spec"
)

// quarantineSite returns the site from which nodes of a release are made in quarantine. declared is the
// release as the site directory declares it now. kept is the site from which it was staged before,
// or nil if it was not staged or that site cannot be read.
//
// A release has one copy of the site directory, and its live nodes are made from that copy. The
// copy stays while nodes of the release are live or may be again. During that time, more nodes can
// be staged only if both directories make the same nodes of the release.
func quarantineSite(declared, kept *site.Site, hosts []observe.Host) (*site.Site, error) {
	bound := boundNodes(hosts, declared.Stage)
	if len(bound) == 0 {
		return declared, nil
	}
	what, err := "its site directory as staged is missing or cannot be read", error(nil)
	if kept != nil {
		if what, err = Difference(kept, declared); err != nil || what == "" {
			return kept, err
		}
		what = "the site directory now declares other nodes for it: " + what
	}
	p := problem.New(problem.Mistake, "release %d is used by %s: %s", declared.Stage, bound[0], what).
		Try("declare the change as another release and stage it")
	if isRollbackTarget(hosts, declared.Stage) {
		p.Try("or, with --give-up-rollback, stage it over the release that rollback returns to")
	}
	return nil, p
}

// boundNodes returns the nodes, sorted, for which a release is live or may be again without being
// staged.
func boundNodes(hosts []observe.Host, release int) []string {
	all := map[string]bool{}
	for i := range hosts {
		for _, group := range bindings(&hosts[i].Releases) {
			for node, number := range group {
				if number == release {
					all["node "+node] = true
				}
			}
		}
	}
	return slices.Sorted(maps.Keys(all))
}

// bindings returns maps from nodes to the releases that are live or may be again without being
// staged.
func bindings(r *observe.Releases) []map[string]int {
	groups := []map[string]int{r.Active, r.Former}
	if r.Trial != nil {
		groups = append(groups, r.Trial.Back)
	}
	if r.Switch != nil {
		groups = append(groups, r.Switch.To, r.Switch.End)
	}
	return groups
}

// isRollbackTarget reports whether a release is bound only because rollback returns to it.
func isRollbackTarget(hosts []observe.Host, release int) bool {
	given := slices.Clone(hosts)
	for i := range given {
		given[i].Releases = AbandonRollback(given[i].Releases, release, plan.Goal{})
	}
	return len(boundNodes(given, release)) == 0
}

// Difference describes how the nodes differ that two site directories make of a release, in
// quarantine and live. It returns "" if they do not. Networks belong to no release and count only
// as far as they affect nodes.
func Difference(former, current *site.Site) (string, error) {
	for _, stage := range []int{current.Stage, 0} {
		before, after := *former, *current
		before.Stage, after.Stage = stage, stage
		if what, err := difference(&before, &after); what != "" || err != nil {
			return what, err
		}
	}
	return "", nil
}

func difference(former, current *site.Site) (string, error) {
	before, after := spec.NewBuilder(former), spec.NewBuilder(current)
	nodes := former.NodesByName()
	for i := range current.Nodes {
		name := current.Nodes[i].Name
		old := nodes[name]
		delete(nodes, name)
		if old == nil {
			return fmt.Sprintf("node %s did not exist", name), nil
		}
		what, err := describeChange(before, after, old, &current.Nodes[i])
		if err != nil {
			return "", err
		}
		if what != "" {
			return fmt.Sprintf("node %s: %s", name, what), nil
		}
	}
	for _, name := range slices.Sorted(maps.Keys(nodes)) {
		return fmt.Sprintf("node %s is missing", name), nil
	}
	return "", nil
}

// sameDigest compares by the digests that would be recorded.
func sameDigest(a, b any) bool { return spec.Digest(a) == spec.Digest(b) }

// changedParts describes which parts of a node differ, or returns "" if no part does.
func changedParts(old, wanted *spec.Node) string {
	var words []string
	for _, text := range []string{spec.DescribeChanges(old.Parts, wanted.Parts),
		spec.DescribeChanges(old.Config.Parts, wanted.Config.Parts),
		spec.DescribeChanges(old.Config.Active, wanted.Config.Active)} {
		if text != "" {
			words = append(words, text)
		}
	}
	return strings.Join(words, ", ")
}

// makers make the nodes of releases in quarantine, placed as stage places them.
type makers struct {
	spans *spans
	by    map[int]*spec.Builder // release
}

// outdatedReason describes how an instance differs from what its release declares, or returns "" if it
// does not. The release may have been staged again from another site directory, in a run that ended
// before it reached this node.
func (all makers) outdatedReason(m *member) string {
	maker := all.of(m.site, m.to.Release)
	declared, _ := maker.Site.Node(m.name)
	node, err := maker.Node(declared)
	if err != nil {
		return "" // it was made before templates could have this mistake
	}
	live := stand.AsLive(*node)
	return stand.UpdateReason(&m.live, &live)
}

// of returns the maker of a release.
func (all makers) of(s *site.Site, release int) *spec.Builder {
	if all.by[release] == nil {
		staged := *s
		staged.Stage = release
		placed, err := place.Assign(&staged, all.spans.hosts)
		if err != nil { // nodes that were never staged have no host
			placed = staged.WithHosts(observe.HostByNode(all.spans.hosts, release))
		}
		all.by[release] = spec.NewBuilder(placed)
		all.by[release].MTUs = all.spans.live.MTUs()
	}
	return all.by[release]
}
