package observe

import (
	"maps"
	"slices"

	"orrery/internal/problem"
	"orrery/internal/site"
	"orrery/internal/text/humanize"
	"orrery/internal/text/sanitize"
)

// Every host stores a record of the releases of all nodes, and root on a host can write anything
// into it. Therefore a host's record counts only for its own nodes. A record of another host,
// however new, can move these nodes only to releases that their own host has recorded as current or
// as the target of a change (decision 57).

// A ReleaseReport is what one host reports about releases.
type ReleaseReport struct {
	Host string
	Releases
	Live      map[string]int // releases of the host's live nodes
	Restoring bool           // a restore is in progress on the host and will replace its record
}

// Agreement is the combined record of all hosts.
type Agreement struct {
	Releases
	Behind []int // indexes of the hosts with another record
	// New means that no host has this record, because it combines those of several hosts. It gets a
	// name when it is written.
	New bool
	Why []string // reasons for a new record, or for updating hosts
}

// An Owner returns the index of the host whose record counts for a node, or Nobody or Elsewhere.
type Owner func(node string) int

// Results of an Owner for a node without a single owning host.
const (
	NoOwner      = -1 // every host may object
	UnknownOwner = -2 // perhaps on a host that does not answer, which objects when it is back
)

// OwnerOf returns the Owner for nodes. The owning host is the one in the site file, or else the
// only host that has the node. Argument blind is whether some hosts do not answer.
func OwnerOf(declared []site.Node, words []ReleaseReport, blind bool) Owner {
	homes, places := map[string]string{}, map[string]int{}
	for i := range declared {
		homes[declared[i].Name] = declared[i].Host
	}
	for i := range words {
		places[words[i].Host] = i
	}
	return func(node string) int {
		home := homes[node]
		i, answers := places[home]
		switch {
		case home != "" && !answers:
			return UnknownOwner
		case home != "" && words[i].State() != "":
			return i
		case home != "":
			return NoOwner // a new host has no record of it
		}
		on := -1
		for i := range words {
			if _, ok := words[i].Live[node]; ok {
				if on >= 0 {
					return NoOwner
				}
				on = i
			}
		}
		if on < 0 && blind {
			return UnknownOwner
		}
		return on
	}
}

// Agree combines the records of all hosts. The result is the newest record, if no host objects to
// what it says about the host's own nodes.
func Agree(words []ReleaseReport, owner Owner) (Agreement, error) {
	if r, why, apart := diverged(words, owner); apart {
		return Agreement{Releases: r, New: true, Why: []string{why}}, nil
	}
	head, behind, err := newest(words)
	if err != nil {
		return Agreement{}, err
	}
	agreed := Agreement{Releases: words[head].Releases, Behind: behind}
	unbegun := false
	for _, i := range behind {
		if words[i].State() == "" || words[i].Restoring {
			continue
		}
		mine := func(node string) bool { on := owner(node); return on == i || on == NoOwner }
		o := objection{&words[i], &words[head], mine}
		if err := o.check(); err != nil {
			return Agreement{}, err
		}
		if o.switchNotBegun() {
			unbegun = true
			agreed.Why = append(agreed.Why, "host "+words[i].Host+
				" has no record of a switch that other hosts have: the switch had not begun and is cancelled")
		}
		if o.onTrial() {
			if agreed.Ended != nil && agreed.Ended.Settled {
				return Agreement{}, o.contradiction("its trial is over on all hosts", words[i].Trial.Release)
			}
			agreed.Trial, agreed.Ended, agreed.Confirmed, agreed.New = words[i].Trial, words[i].Ended, words[i].Confirmed, true
			agreed.Why = append(agreed.Why, "host "+words[i].Host+
				" does not know yet that the trial is over; the trial continues")
		}
	}
	if unbegun {
		agreed.Switch, agreed.New = cancelledSwitch(words, head, owner), true
	}
	return agreed, nil
}

// An objection compares a host's record of its own nodes with a newer record of another host.
type objection struct {
	*ReleaseReport
	head *ReleaseReport
	mine func(node string) bool
}

// check returns an error if the newer record contradicts the host's own record about the host's
// nodes.
func (o objection) check() error {
	for _, node := range o.nodes() {
		current, known := o.live(node)
		if active, listed := o.head.Active[node]; listed && (!known || active != current) {
			if live, ok := o.Live[node]; !o.mayChangeTo(node, active) || ok && live != active {
				return o.contradiction("it is live", active, node)
			}
		} else if _, on := o.Active[node]; on && !listed {
			return o.contradiction("it is live", 0, node)
		}
		if former, listed := o.head.Former[node]; listed && former != current && !o.mayChangeTo(node, former) {
			if own, ok := o.Former[node]; !ok || own != former {
				return o.contradiction("rollback returns to it", former, node)
			}
		}
		if o.head.Trial != nil {
			if back, listed := o.head.Trial.Back[node]; listed && !o.mayReturnTo(node, back) {
				return o.contradiction("a trial reverts to it", back, node)
			}
		}
		if o.head.Switch != nil {
			if end, listed := o.head.Switch.End[node]; listed && !o.mayEndAt(node, end) && !o.mayNotHaveBegun(node, end) {
				return o.contradiction("a switch ends at it", end, node)
			}
		}
	}
	return nil
}

// nodes returns the sorted names of the nodes in either record that the host owns.
func (o objection) nodes() []string {
	all := map[string]bool{}
	for _, w := range []*ReleaseReport{o.head, o.ReleaseReport} {
		for _, group := range w.groups() {
			for node := range group {
				all[node] = true
			}
		}
	}
	maps.DeleteFunc(all, func(node string, _ bool) bool { return !o.mine(node) })
	return slices.Sorted(maps.Keys(all))
}

// groups returns all maps from nodes to releases in the record.
func (r *Releases) groups() []map[string]int {
	all := []map[string]int{r.Active, r.Former}
	if r.Switch != nil {
		all = append(all, r.Switch.To, r.Switch.End)
	}
	if r.Trial != nil {
		all = append(all, r.Trial.Back)
	}
	return all
}

// live returns the live release of a node according to the host itself.
func (w *ReleaseReport) live(node string) (release int, known bool) {
	// A node that was never part of a switch is only in Live.
	if release, known = w.Active[node]; !known {
		release, known = w.Live[node]
	}
	return release, known
}

// mayChangeTo reports whether the host's record allows that a node changes to a release.
func (w *ReleaseReport) mayChangeTo(node string, release int) bool {
	if w.Switch != nil {
		for _, group := range []map[string]int{w.Switch.To, w.Switch.End} {
			if to, ok := group[node]; ok && to == release {
				return true
			}
		}
	}
	back, ok := w.returnRelease(node)
	return ok && back == release
}

// mayReturnTo reports whether the host has recorded a trial, or a switch that may begin one, after which
// a node returns to release back.
func (w *ReleaseReport) mayReturnTo(node string, back int) bool {
	if w.Trial != nil {
		own, ok := w.Trial.Back[node]
		return ok && own == back
	}
	if w.Switch == nil {
		return false
	}
	own, ok := w.Switch.End[node]
	return ok && own == back
}

// mayEndAt reports whether a switch may end with a node at a release. It may if the node is already
// there, or if the host has recorded a change to it.
func (w *ReleaseReport) mayEndAt(node string, release int) bool {
	current, known := w.live(node)
	return known && current == release || w.mayChangeTo(node, release)
}

// mayNotHaveBegun reports whether a switch that the host has not recorded may be one that had not begun.
// This is possible for a rollback, or for the first switch of a node.
func (w *ReleaseReport) mayNotHaveBegun(node string, end int) bool {
	former, ok := w.Former[node]
	_, known := w.live(node)
	return ok && former == end || !known
}

// switchNotBegun reports whether the newer record has a switch of this host's nodes that the host has not
// recorded. A switch begins only after all hosts have recorded it, so this switch has not begun.
func (o objection) switchNotBegun() bool {
	return o.head.Switch != nil && slices.ContainsFunc(o.nodes(), func(node string) bool {
		end, listed := o.head.Switch.End[node]
		return listed && !o.mayEndAt(node, end)
	})
}

// onTrial reports whether nodes of this host are on trial according to its own record, but no
// longer according to the newer one.
func (o objection) onTrial() bool {
	return o.Trial != nil && o.head.Trial == nil && o.head.Switch == nil &&
		slices.ContainsFunc(o.nodes(), func(node string) bool {
			back, tried := o.Trial.Back[node]
			live, ok := o.Live[node]
			return tried && ok && live != back && o.Active[node] == live && o.head.Active[node] == live
		})
}

// contradiction returns the error that another host's record contradicts this host's record about
// its own nodes.
func (o objection) contradiction(what string, release int, nodes ...string) error {
	of := ""
	if len(nodes) > 0 {
		of = " of node " + problem.Truncate(sanitize.Line(humanize.List(nodes, 1)), 80)
	}
	return problem.New(problem.Surprise,
		"host %s reports of release %s%s that %s, which contradicts the record of host %s", o.head.Host,
		site.ReleaseName(release), of, what, o.Host).
		Try("releases.json of the site on %s was not written by a control host: inspect that host, and leave it out until then (--without %s). If that record is right, for example because %s was restored from an old disk, remove releases.json from %[3]s, which then adopts the record",
			o.head.Host, o.head.Host, o.Host)
}

// cancelledSwitch returns the switch of the newest record, which had not begun, changed so that it ends
// where the nodes are. For each node, the record of its own host decides. If none of the nodes is
// live, unbegin returns nil.
func cancelledSwitch(words []ReleaseReport, head int, owner Owner) *Switch {
	old := words[head].Switch
	result := *old
	result.To, result.End = map[string]int{}, map[string]int{}
	for node, to := range old.To {
		on := owner(node)
		if on < 0 {
			on = head
		}
		if live, known := words[on].live(node); known {
			result.To[node], result.End[node] = to, live
		}
	}
	if len(result.To) == 0 {
		return nil
	}
	return &result
}
