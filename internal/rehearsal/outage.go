package rehearsal

import (
	"cmp"
	"net/netip"
	"slices"
	"time"
)

// A Target is a node that is pinged.
type Target struct {
	Node    string
	Address netip.Addr
}

// An Outage is a period in which a node did not answer another one.
type Outage struct{ From, Until time.Time }

// OutageThreshold is the time after which a node without an answer counts as silent. PingInterval is
// the interval of the pings.
const (
	OutageThreshold = 100 * time.Millisecond
	PingInterval    = 20 * time.Millisecond
)

// A View contains what one node has seen of another.
type View struct {
	From    string // the node that pings
	Of      Target
	First   time.Time // first answer of the target
	Last    time.Time // last time at which the target was pinged
	Outages []Outage  `json:"Silences"` // in order, without overlaps
}

// An OutageSummary describes when a node answered none of the nodes that could reach it.
type OutageSummary struct {
	Node    string     `json:"node"`
	Address netip.Addr `json:"address"`
	Gaps    int        `json:"gaps"`
	Longest float64    `json:"longest"` // seconds
	Whole   float64    `json:"whole"`   // total in seconds
	Silent  bool       `json:"silent"`  // whether the node is silent at the end
	Asked   int        `json:"asked"`   // number of nodes of other hosts that pinged it, or 0 if there were none
}

// SummarizeOutages returns how long each target answered no node of another host. A prober whose host has
// ended sees nothing more, and does not count from then on.
func SummarizeOutages(targets []Target, all []HostView, end time.Time) []OutageSummary {
	var gaps []OutageSummary
	for _, t := range targets {
		var views []View
		for _, s := range all {
			if slices.Contains(s.Nodes, t.Node) {
				continue // a node on the same host proves little
			}
			for _, v := range s.Views {
				if v.Of == t {
					views = append(views, v)
				}
			}
		}
		g := OutageSummary{Node: t.Node, Address: t.Address, Asked: len(views)}
		for _, s := range commonOutages(views) {
			g.Gaps++
			took := s.Until.Sub(s.From).Seconds()
			g.Whole += took
			g.Longest = max(g.Longest, took)
			g.Silent = g.Silent || end.Sub(s.Until) < OutageThreshold
		}
		gaps = append(gaps, g)
	}
	return gaps
}

// commonOutages returns the periods in which at least one node pinged, and none got an answer.
func commonOutages(views []View) (all []Outage) {
	type change struct {
		at             time.Time
		asking, silent int
	}
	var changes []change
	for _, v := range views {
		changes = append(changes, change{v.First, 1, 0}, change{v.Last, -1, 0})
		for _, s := range v.Outages {
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
			all = append(all, Outage{since, c.at})
			since = time.Time{}
		}
	}
	return all
}
