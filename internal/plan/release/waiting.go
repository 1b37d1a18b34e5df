package release

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"orrery/internal/observe"
	"orrery/internal/plan"
	"orrery/internal/plan/stand"
	"orrery/internal/problem"
	"orrery/internal/site"
	"orrery/internal/site/spec"
	"orrery/internal/text/humanize"
)

// maxEdits is how many different edits of one release a warning names.
const maxEdits = 6

// PendingEdits returns warnings about edits of the site directory that do not reach nodes of live
// releases. Such nodes are made from the copy that was taken when the release was staged. declared
// returns a release as the site directory declares it now. homes maps nodes to hosts.
func PendingEdits(s *site.Site, hosts []observe.Host, goal plan.Goal, homes map[string]string,
	declared func(number int) (*site.Site, error)) []string {
	live, err := stand.Released(s, hosts, goal.Releases)
	if s.Stage != 0 || err != nil {
		return nil
	}
	all := map[int]*edits{}
	for i := range live.Nodes {
		n := &live.Nodes[i]
		if n.Release == s.Nodes[i].Release || !selects(goal, n.Name) {
			continue
		}
		if _, known := all[n.Release]; !known {
			all[n.Release] = newEdits(goal.Releases[n.Release], homes, func() (*site.Site, error) { return declared(n.Release) })
		}
		all[n.Release].compare(n.Name)
	}
	var warnings []string
	for _, release := range slices.Sorted(maps.Keys(all)) {
		if text := all[release].text(); text != "" {
			warnings = append(warnings,
				fmt.Sprintf("changes of nodes wait for the next release, because release %d is live: %s",
					release, text))
		}
	}
	return warnings
}

// edits are the changes that the site directory makes to a live release. A nil edits means that the
// site directory does not declare the release, so there is nothing to compare.
type edits struct {
	before, after *spec.Builder
	was, is       map[string]*site.Node
	words         []string            // descriptions of edits, in the order in which they were found
	nodes         map[string][]string // description -> nodes
}

func newEdits(old *site.Site, homes map[string]string, declared func() (*site.Site, error)) *edits {
	current, err := declared()
	if err != nil {
		return nil
	}
	old, current = old.WithHosts(homes), current.WithHosts(homes)
	return &edits{before: spec.NewBuilder(old), after: spec.NewBuilder(current), was: old.NodesByName(),
		is:    current.NodesByName(),
		nodes: map[string][]string{}}
}

// compare compares a node if both versions have it. A node that is not in the release is made as the
// site directory declares it.
func (e *edits) compare(name string) {
	if e == nil {
		return
	}
	old, current := e.was[name], e.is[name]
	if old == nil || current == nil {
		return
	}
	what, err := describeChange(e.before, e.after, old, current)
	if err != nil {
		what = err.Error() // the edit is invalid, which does not block work that does not need it
	}
	if what == "" {
		return
	}
	if e.nodes[what] == nil {
		e.words = append(e.words, what)
	}
	e.nodes[what] = append(e.nodes[what], name)
}

func (e *edits) text() string {
	if e == nil {
		return ""
	}
	texts := make([]string, len(e.words))
	for i, what := range e.words {
		texts[i] = humanize.List(e.nodes[what], 4) + ": " + what
	}
	if len(texts) > maxEdits {
		texts = append(texts[:maxEdits:maxEdits], fmt.Sprintf("and %d more", len(texts)-maxEdits))
	}
	return strings.Join(texts, "; ")
}

// describeChange describes how a node differs between two makers, or returns "" if it does not.
func describeChange(before, after *spec.Builder, old, current *site.Node) (string, error) {
	b, err := before.Node(old)
	if err != nil {
		return "", err
	}
	a, err := after.Node(current)
	if err != nil || sameDigest(b, a) {
		return "", err
	}
	return cmp.Or(changedParts(b, a), stand.UpdateReason(b, a), "it is built differently"), nil
}

// ReturningReleases warns of the releases that come up with a site of which no node exists, because they
// were live when the site was taken down.
func ReturningReleases(s *site.Site, hosts []observe.Host, goal plan.Goal) []string {
	if s.Stage != 0 || slices.ContainsFunc(hosts, func(h observe.Host) bool { return h.Unknown || len(h.Nodes) > 0 }) {
		return nil
	}
	live, err := stand.Released(s, hosts, goal.Releases)
	if err != nil {
		return nil
	}
	at := map[int]bool{}
	for i := range live.Nodes {
		if n := &live.Nodes[i]; n.Release != s.Nodes[i].Release && selects(goal, n.Name) {
			at[n.Release] = true
		}
	}
	var warnings []string
	for _, release := range slices.Sorted(maps.Keys(at)) {
		warnings = append(warnings, fmt.Sprintf(
			"release %d is started again, because it was live when the site was taken down", release))
	}
	return warnings
}

// Down plans what plan.Down does. When a whole site is taken down, it warns of the releases that
// the next up brings up again. It refuses to take down nodes that a trial needs to go back.
func Down(s *site.Site, hosts []observe.Host, goal plan.Goal) (*plan.Plan, error) {
	if goal.Nodes != nil {
		if err := checkTrialNodes(hosts, goal.Nodes); err != nil {
			return nil, err
		}
	}
	p := plan.Down(s, hosts, goal)
	if goal.Nodes != nil || p.Empty() {
		return p, nil
	}
	live := map[int]bool{}
	for i := range hosts {
		for _, release := range hosts[i].Releases.RestartTargets() {
			live[release] = true
		}
	}
	delete(live, 0)
	for _, release := range slices.Sorted(maps.Keys(live)) {
		p.Warnings = append(p.Warnings, fmt.Sprintf("release %d stays live: the next orrery up starts it again",
			release))
	}
	return p, nil
}

// checkTrialNodes returns an error if a release is on trial with one of the nodes. Without the node's
// instance of the former release, the set could not go back.
func checkTrialNodes(hosts []observe.Host, nodes map[string]bool) error {
	for i := range hosts {
		trial := hosts[i].Releases.Trial
		if trial == nil {
			continue
		}
		for _, name := range slices.Sorted(maps.Keys(trial.Back)) {
			if nodes[name] {
				return problem.New(problem.Mistake, "node %s is on trial in release %s until %s, and may have to go back to release %s",
					name, site.ReleaseName(trial.Release), humanize.Time(trial.Until), site.ReleaseName(trial.Back[name])).
					Try("first end the trial: orrery confirm keeps release %s, orrery rollback goes back",
						site.ReleaseName(trial.Release))
			}
		}
	}
	return nil
}
