// Package plan decides what to do: it is a pure function of the declared site and the observed hosts.
//
// Call Up, Down, Start, Stop or Build with a site, what was observed and a Goal. You get a Plan: steps in order, each with its reason, the steps that it
// needs, the nodes that it disturbs and how to undo it. Show it, or give it to package apply. Package wayback plans how the steps of a plan are taken back.
//
// The package does no I/O and reads no clock, so the preview is the run: apply carries out the steps of a plan and nothing else, and a plan made afterwards
// is empty. Before a step travels to its host, a Packer adds what it needs of the site, and Encode writes it down.
package plan

import (
	"maps"
	"slices"
	"time"

	"orrery/internal/observe"
	"orrery/internal/plan/orphan"
	"orrery/internal/plan/place"
	"orrery/internal/problem"
	"orrery/internal/site"
	"orrery/internal/site/spec"
)

// A Plan is what will be done, in an order in which it can be done.
type Plan struct {
	Site  string  `json:"site"`
	Steps []*Step `json:"steps"`
	// Batches are the names of the nodes that are disturbed one batch after the other; none: they need not wait.
	Batches [][]string `json:"batches,omitempty"`
	// Warnings are what whoever has it done should know before.
	Warnings []string `json:"warnings,omitempty"`
	// Orphans are volumes that no node uses any more. No step is about them.
	Orphans []orphan.Orphan `json:"orphans,omitempty"`
	// Homes tells on which host each node is, or will be; nil: the plan is not about that.
	Homes map[string]string `json:"-"`
}

// A Goal says what a plan is to reach.
type Goal struct {
	Nodes   map[string]bool // names of the nodes concerned; nil: all, and what is no longer declared is removed
	Volumes bool            // Down also removes persistent data
	Batch   site.Batch      // so many nodes Up disturbs at once, whatever groups say; the zero one: as they say
	// Releases are the sites as the releases that may be live make them, by number.
	Releases map[int]*site.Site
	Ending   Ending // of nodes that run: for Down, Stop and Restart
}

// An Ending says how nodes that run end.
type Ending struct {
	Hard    bool          // at once, as a power cut would: what they have not written is lost
	Timeout time.Duration // for shutting down, after which they are killed, or 0 for DefaultStopTimeout
}

// DefaultStopTimeout is how long a node has to shut down before it is killed.
const DefaultStopTimeout = 90 * time.Second

// Kind returns the kind of the steps that end nodes so.
func (e Ending) Kind() Kind {
	if e.Hard {
		return KillNode
	}
	return StopNode
}

func (g Goal) concerns(node string) bool { return g.Nodes == nil || g.Nodes[node] }

// named returns the names of the nodes concerned, unless all are.
func (g Goal) named() []string { return slices.Sorted(maps.Keys(g.Nodes)) }

// Empty reports whether there is nothing to do.
func (p *Plan) Empty() bool { return len(p.Steps) == 0 }

// Counts tells how many steps of each kind there are.
func (p *Plan) Counts() map[Kind]int {
	counts := map[Kind]int{}
	for _, s := range p.Steps {
		counts[s.Kind]++
	}
	return counts
}

// Disturbed returns the names of all nodes that the plan disturbs, sorted.
func (p *Plan) Disturbed() []string {
	var all []string
	for _, s := range p.Steps {
		all = append(all, s.Disturbs...)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// Nodes returns the names of all nodes that steps of the plan are about, sorted.
func (p *Plan) Nodes() []string {
	var all []string
	for _, s := range p.Steps {
		if s.ForNode() {
			all = append(all, s.Subject)
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// draft is a plan in the making.
type draft struct {
	*basis
	Plan
	spans    Joints                    // networks that are on several hosts
	networks []spec.Network            // of the site
	layers   map[string]int            // host and digest -> step that builds it, or fetches it
	fetched  map[string]string         // digest -> the last host that is planned to fetch it
	origins  map[string]*place.Origin  // of layers, by their digests
	needed   map[string]map[string]int // digest -> host -> nodes that stand on it; nil: not counted yet
	last     map[string]int            // node -> its last step
	frees    freed
	relinked map[claim]bool // networks whose links are made anew
	names    string         // digest of what nodes know of one another
	refused  problem.List   // networks that hosts cannot have

	// Of moves from host to host, by nodes or hosts:
	settled  map[string][]int // node -> the steps that bring a move to its end that was cut short
	arrivals map[string][]int // host -> the steps by which nodes come to it
}

func newDraft(s *site.Site, hosts []observe.Host, goal Goal) *draft {
	return &draft{
		basis: newBasis(s, hosts, goal), Plan: Plan{Site: s.Name}, layers: map[string]int{}, fetched: map[string]string{},
		origins: map[string]*place.Origin{}, last: map[string]int{}, frees: freed{}, relinked: map[claim]bool{},
		settled: map[string][]int{}, arrivals: map[string][]int{},
	}
}

// add puts a step at the end and gives its number.
func (d *draft) add(s Step) int {
	s.N = len(d.Steps)
	s.Needs = slices.Clone(s.Needs) // steps may be given the same list, and sorted writes to it
	d.Steps = append(d.Steps, &s)
	return s.N
}

// found indexes the nodes of a host by name.
func found(h *observe.Host) map[string]*observe.Node {
	all := make(map[string]*observe.Node, len(h.Nodes))
	for i := range h.Nodes {
		all[h.Nodes[i].Name] = &h.Nodes[i]
	}
	return all
}

// sorted returns the plan in an order in which every step comes after those that it needs, otherwise as drafted.
func (d *draft) sorted() *Plan {
	place := make([]int, len(d.Steps))
	for i := range place {
		place[i] = -1
	}
	ordered := make([]*Step, 0, len(d.Steps))
	var visit func(n int)
	visit = func(n int) {
		if place[n] >= 0 {
			return
		}
		place[n] = len(d.Steps) // being visited
		for _, need := range d.Steps[n].Needs {
			visit(need)
		}
		place[n] = len(ordered)
		ordered = append(ordered, d.Steps[n])
	}
	for n := range d.Steps {
		visit(n)
	}
	for n, s := range ordered {
		s.N = n
		for i, need := range s.Needs {
			s.Needs[i] = place[need]
		}
		slices.Sort(s.Needs)
		s.Needs = slices.Compact(s.Needs)
		// A cycle, which check refuses, is cut here: nobody could begin it.
		s.Needs = slices.DeleteFunc(s.Needs, func(need int) bool { return need >= n })
	}
	d.Steps = ordered
	return &d.Plan
}
