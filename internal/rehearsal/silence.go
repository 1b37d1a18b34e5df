package rehearsal

import (
	"cmp"
	"net/netip"
	"slices"
	"time"
)

// A Target is a node that is asked whether it is there.
type Target struct {
	Node    string
	Address netip.Addr
}

// A Silence is a time in which a node, as it seemed to another, did not answer.
type Silence struct{ From, Until time.Time }

// Long is from when on a node that does not answer is silent: each is asked every Often.
const (
	Long  = 100 * time.Millisecond
	Often = 20 * time.Millisecond
)

// A View is what one node has seen of another.
type View struct {
	From     string // the node that has asked
	Of       Target
	First    time.Time // when the other first answered
	Last     time.Time // until when it was asked
	Silences []Silence // in order, apart
}

// A Gap is when nobody had an answer from a node who could have had one.
type Gap struct {
	Node    string     `json:"node"`
	Address netip.Addr `json:"address"`
	Gaps    int        `json:"gaps"`
	Longest float64    `json:"longest"` // seconds
	Whole   float64    `json:"whole"`   // seconds, of all of them together
	Silent  bool       `json:"silent"`  // at the end
	Asked   int        `json:"asked"`   // by so many nodes of other hosts; 0: nobody there could tell
}

// Gaps tells how long each target answered nobody on other hosts than its own. A witness whose host
// went sees nothing more, and does not count from then on.
func Gaps(targets []Target, all []Seen, end time.Time) []Gap {
	var gaps []Gap
	for _, t := range targets {
		var views []View
		for _, s := range all {
			if slices.Contains(s.Nodes, t.Node) {
				continue // that it can reach what it has says little
			}
			for _, v := range s.Views {
				if v.Of == t {
					views = append(views, v)
				}
			}
		}
		g := Gap{Node: t.Node, Address: t.Address, Asked: len(views)}
		for _, s := range common(views) {
			g.Gaps++
			took := s.Until.Sub(s.From).Seconds()
			g.Whole += took
			g.Longest = max(g.Longest, took)
			g.Silent = g.Silent || end.Sub(s.Until) < Long
		}
		gaps = append(gaps, g)
	}
	return gaps
}

// common returns the times at which somebody asked, and nobody who did had an answer.
func common(views []View) (all []Silence) {
	type change struct {
		at             time.Time
		asking, silent int
	}
	var changes []change
	for _, v := range views {
		changes = append(changes, change{v.First, 1, 0}, change{v.Last, -1, 0})
		for _, s := range v.Silences {
			changes = append(changes, change{s.From, 0, 1}, change{s.Until, 0, -1})
		}
	}
	slices.SortStableFunc(changes, func(a, b change) int {
		return cmp.Or(a.at.Compare(b.at), cmp.Compare(a.asking+a.silent, b.asking+b.silent))
	})
	asking, silent := 0, 0
	var since time.Time
	for i, c := range changes {
		asking, silent = asking+c.asking, silent+c.silent
		if i+1 < len(changes) && changes[i+1].at.Equal(c.at) {
			continue
		}
		switch quiet := asking > 0 && silent >= asking; {
		case quiet && since.IsZero():
			since = c.at
		case !quiet && !since.IsZero():
			all = append(all, Silence{since, c.at})
			since = time.Time{}
		}
	}
	return all
}
