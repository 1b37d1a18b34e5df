// Package plan decides what to do: it is a pure function of the declared site and the observed hosts.
//
// Call Up, Down, Start, Stop or Build with a site, what was observed and a Goal. You get a Plan:
// steps in order, each with its reason, the steps that it needs, the nodes that it disturbs and how
// to undo it. Show it, or give it to package apply. Package wayback plans how the steps of a plan
// are taken back.
//
// The package does no I/O and reads no clock, so the preview is the run: apply carries out the
// steps of a plan and nothing else, and a plan made afterwards is empty. Before a step travels to
// its host, a Packer adds what it needs of the site, and Encode writes it down.
//
// Inside, a basis is what a plan is made from, and a draft has the steps so far. networkDraft,
// layerDraft and nodeDraft add the steps of their subject, siteDraft and mover put these together.
package plan

import (
	"maps"
	"slices"
	"time"

	"orrery/internal/plan/orphan"
	"orrery/internal/site"
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
