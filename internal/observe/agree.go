package observe

import (
	"maps"
	"slices"

	"orrery/internal/problem"
	"orrery/internal/site"
	"orrery/internal/text/humanize"
	"orrery/internal/text/sanitize"
)

// Every host has a record of the releases of all nodes, and root of a host can write to it what he
// likes. So a host speaks for its own nodes only: another one's record, however new, takes these
// nowhere but where their own host's record says that they are, or were going (decision 57).

// A Word is what one host says of releases.
type Word struct {
	Host string
	Releases
	Live      map[string]int // its live nodes, and their releases
	Restoring bool           // the site is being restored there, and its record is about to be replaced
}

// Agreed is what is on record of releases for all hosts.
type Agreed struct {
	Releases
	Behind []int    // places of the hosts that have another record
	New    bool     // no host has this one: it is made of those of several, and gets a name when it is written
	Why    []string // it is so, or hosts will be told
}

// An Owner returns the place of the host that speaks for a node, or Nobody or Elsewhere.
type Owner func(node string) int

// Of nodes that no single host speaks for:
const (
	Nobody    = -1 // every host may object
	Elsewhere = -2 // it may be on a host that does not answer, which objects when it is back
)

// OwnerOf returns who speaks for nodes: the host that the site file names, else the only one that
// has the node. Blind is whether some hosts do not answer.
func OwnerOf(declared []site.Node, words []Word, blind bool) Owner {
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
			return Elsewhere
		case home != "" && words[i].State() != "":
			return i
		case home != "":
			return Nobody // a new host knows nothing of it
		}
		on := -1
		for i := range words {
			if _, ok := words[i].Live[node]; ok {
				if on >= 0 {
					return Nobody
				}
				on = i
			}
		}
		if on < 0 && blind {
			return Elsewhere
		}
		return on
	}
}

// Agree returns what is on record of releases for all hosts, from what each says: the newest
// record, if no host objects to what it says of its own nodes.
func Agree(words []Word, owner Owner) (Agreed, error) {
	if r, why, apart := apart(words, owner); apart {
		return Agreed{Releases: r, New: true, Why: []string{why}}, nil
	}
	head, behind, err := newest(words)
	if err != nil {
		return Agreed{}, err
	}
	agreed := Agreed{Releases: words[head].Releases, Behind: behind}
	unbegun := false
	for _, i := range behind {
		if words[i].State() == "" || words[i].Restoring {
			continue
		}
		mine := func(node string) bool { on := owner(node); return on == i || on == Nobody }
		o := objection{&words[i], &words[head], mine}
		if err := o.check(); err != nil {
			return Agreed{}, err
		}
		if o.unbegun() {
			unbegun = true
			agreed.Why = append(agreed.Why, "host "+words[i].Host+
				" has no record of a switch that others have, so that had not begun; it ends where it would have begun")
		}
		if o.onTrial() {
			if agreed.Ended != nil && agreed.Ended.Settled {
				return Agreed{}, o.contradiction("its trial is over on all hosts", words[i].Trial.Release)
			}
			agreed.Trial, agreed.Ended, agreed.Confirmed, agreed.New = words[i].Trial, words[i].Ended, words[i].Confirmed, true
			agreed.Why = append(agreed.Why, "host "+words[i].Host+" was not told that the trial is over; it goes on")
		}
	}
	if unbegun {
		agreed.Switch, agreed.New = unbegin(words, head, owner), true
	}
	return agreed, nil
}

// An objection is what a host has on record of its own nodes against a newer record of another one.
type objection struct {
	*Word
	head *Word
	mine func(node string) bool
}

// check returns an error if the newer record says of nodes of this host what its own contradicts.
func (o objection) check() error {
	for _, node := range o.nodes() {
		current, known := o.live(node)
		if active, listed := o.head.Active[node]; listed && (!known || active != current) {
			if live, ok := o.Live[node]; !o.underWay(node, active) || ok && live != active {
				return o.contradiction("it is live", active, node)
			}
		} else if _, on := o.Active[node]; on && !listed {
			return o.contradiction("it is live", 0, node)
		}
		if former, listed := o.head.Former[node]; listed && former != current && !o.underWay(node, former) {
			if own, ok := o.Former[node]; !ok || own != former {
				return o.contradiction("rollback returns to it", former, node)
			}
		}
		if o.head.Trial != nil {
			if back, listed := o.head.Trial.Back[node]; listed && !o.tries(node, back) {
				return o.contradiction("a trial goes back to it", back, node)
			}
		}
		if o.head.Switch != nil {
			if end, listed := o.head.Switch.End[node]; listed && !o.ends(node, end) && !o.mayIntend(node, end) {
				return o.contradiction("a switch ends at it", end, node)
			}
		}
	}
	return nil
}

// nodes returns the names of those that either record is about and this host speaks for, sorted.
func (o objection) nodes() []string {
	all := map[string]bool{}
	for _, w := range []*Word{o.head, o.Word} {
		for _, group := range w.groups() {
			for node := range group {
				all[node] = true
			}
		}
	}
	maps.DeleteFunc(all, func(node string, _ bool) bool { return !o.mine(node) })
	return slices.Sorted(maps.Keys(all))
}

// groups returns all that is on record by node.
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

// live returns the release of a node that is live by a host's own word.
func (w *Word) live(node string) (release int, known bool) {
	if release, known = w.Active[node]; !known { // as it was brought up, without any switch
		release, known = w.Live[node]
	}
	return release, known
}

// underWay reports whether a host has on record that a node may come to be at a release.
func (w *Word) underWay(node string, release int) bool {
	if w.Switch != nil {
		for _, group := range []map[string]int{w.Switch.To, w.Switch.End} {
			if to, ok := group[node]; ok && to == release {
				return true
			}
		}
	}
	back, ok := w.back(node)
	return ok && back == release
}

// tries reports whether a host has on record a trial, or a switch that may begin one, after which a
// node goes back to a release.
func (w *Word) tries(node string, back int) bool {
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

// ends reports whether a switch may end with a node at a release: it is there, or the host has on
// record that it goes there.
func (w *Word) ends(node string, release int) bool {
	current, known := w.live(node)
	return known && current == release || w.underWay(node, release)
}

// mayIntend reports whether a switch that the host does not know may be one that had not begun: a
// rollback, or the first switch of a node.
func (w *Word) mayIntend(node string, end int) bool {
	former, ok := w.Former[node]
	_, known := w.live(node)
	return ok && former == end || !known
}

// unbegun reports whether the newer record has a switch of nodes of this host that it does not
// know. A switch begins when all hosts have it on record, so this one has not.
func (o objection) unbegun() bool {
	return o.head.Switch != nil && slices.ContainsFunc(o.nodes(), func(node string) bool {
		end, listed := o.head.Switch.End[node]
		return listed && !o.ends(node, end)
	})
}

// onTrial reports whether nodes of this host are on trial by its own record, and on trial no more
// by the newer one.
func (o objection) onTrial() bool {
	return o.Trial != nil && o.head.Trial == nil && o.head.Switch == nil &&
		slices.ContainsFunc(o.nodes(), func(node string) bool {
			back, tried := o.Trial.Back[node]
			live, ok := o.Live[node]
			return tried && ok && live != back && o.Active[node] == live && o.head.Active[node] == live
		})
}

// contradiction says that another host says something of nodes that are not its own.
func (o objection) contradiction(what string, release int, nodes ...string) error {
	of := ""
	if len(nodes) > 0 {
		of = " of node " + problem.Short(sanitize.Line(humanize.List(nodes, 1)), 80)
	}
	return problem.New(problem.Surprise,
		"host %s says of release %s%s that %s, and that contradicts what host %s has on record", o.head.Host,
		site.ReleaseName(release), of, what, o.Host).
		Try("whoever wrote releases.json of the site on %s did not steer the site: look at that host, and leave it out until then (--without %s). If it is right all the same, as when %s was put back from an old disk, remove releases.json from %[3]s, which then takes over the record",
			o.head.Host, o.head.Host, o.Host)
}

// unbegin returns the switch of the newest record, which had not begun, as one that ends where
// nodes are: each where its own host has it on record. One of nodes of which nothing is live is
// none.
func unbegin(words []Word, head int, owner Owner) *Switch {
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
