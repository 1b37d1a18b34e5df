// Package plan decides what to do, as a pure function of the site and the observed hosts.
//
// Call Up, Down, Start, Stop or Build with a site, the observed hosts and a Goal. They return a
// Plan: steps in order, each with its reason, the steps that it needs, the nodes that it disturbs
// and how it is undone. The caller shows the plan or passes it to package apply. Package wayback
// plans how the steps of a plan are undone.
//
// The package does no I/O and reads no clock, so a preview shows exactly what a run does. Package
// apply executes the steps of a plan and nothing else, and a plan made afterwards is empty. Before
// a step is sent to its host, a Packer adds the parts of the site that the step needs, and Encode
// encodes the step.
//
// Inside the package, a basis holds the input of a plan, and a draft holds the steps so far.
// networkPlanner, layerPlanner and nodePlanner add the steps for their subject. sitePlanner and mover
// combine them.
package plan

import (
	"maps"
	"slices"
	"time"

	"orrery/internal/plan/orphan"
	"orrery/internal/site"
)

// A Plan is a list of steps in an order in which they can be done.
type Plan struct {
	Site  string  `json:"site"`
	Steps []*Step `json:"steps"`
	// Batches are the names of the nodes of each batch, which are disturbed one batch after the
	// other. It is nil if no node waits for others.
	Batches [][]string `json:"batches,omitempty"`
	// Warnings are what the user should know before the plan runs.
	Warnings []string `json:"warnings,omitempty"`
	// Orphans are volumes that no node uses any more. No step of the plan touches them.
	Orphans []orphan.Orphan `json:"orphans,omitempty"`
	// Homes maps each node to the host on which it is or will be, or is nil if the plan has no
	// homes.
	Homes map[string]string `json:"-"`
}

// A Goal is what a plan must achieve.
type Goal struct {
	Nodes   map[string]bool // names of the selected nodes; if nil, all nodes, and undeclared ones are removed
	Volumes bool            // Down also removes persistent data
	Batch   site.Batch      // how many nodes Up disturbs at once; if zero, the groups decide
	// Releases maps the numbers of the releases that may be live to the site as each declares it.
	Releases map[int]*site.Site
	Raised   map[string]bool // names of the secrets that have a new generation before Up's steps begin
	Ending   StopMode        // how Down, Stop and Restart end running nodes
}

// An StopMode is the way in which running nodes end.
type StopMode struct {
	Hard    bool          // kill them at once, like a power cut: data not yet written is lost
	Timeout time.Duration // for shutting down, before they are killed, or 0 for DefaultStopTimeout
}

// DefaultStopTimeout is how long a node has to shut down before it is killed.
const DefaultStopTimeout = 90 * time.Second

// Kind returns the kind of the steps that end nodes in this way.
func (e StopMode) Kind() Kind {
	if e.Hard {
		return KillNode
	}
	return StopNode
}

func (g Goal) selects(node string) bool { return g.Nodes == nil || g.Nodes[node] }

// nodeNames returns the names of the selected nodes, or nil if all are selected.
func (g Goal) nodeNames() []string { return slices.Sorted(maps.Keys(g.Nodes)) }

// Empty reports whether there is nothing to do.
func (p *Plan) Empty() bool { return len(p.Steps) == 0 }

// Counts returns the number of steps of each kind.
func (p *Plan) Counts() map[Kind]int {
	counts := map[Kind]int{}
	for _, s := range p.Steps {
		counts[s.Kind]++
	}
	return counts
}

// DisturbedNodes returns the names of all nodes that the plan disturbs, sorted.
func (p *Plan) DisturbedNodes() []string {
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
