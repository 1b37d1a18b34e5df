package screen

import (
	"fmt"
	"io"

	"orrery/internal/plan"
	"orrery/internal/plan/orphan"
)

// PlanJSON returns a plan in the form for JSON output.
func PlanJSON(p *plan.Plan) any {
	if p.Batches == nil {
		p.Batches = [][]string{}
	}
	if p.Warnings == nil {
		p.Warnings = []string{}
	}
	if p.Orphans == nil {
		p.Orphans = []orphan.Orphan{}
	}
	return map[string]any{
		"site": p.Site, "steps": p.Steps, "batches": p.Batches, "counts": p.Counts(), "disturbs": p.DisturbedNodes(),
		"orphans":  p.Orphans,
		"warnings": p.Warnings,
	}
}

// Orphans prints the volumes that no node uses any more.
func Orphans(w io.Writer, orphans []orphan.Orphan) {
	for _, o := range orphans {
		if o.IsUnclaimed() {
			fmt.Fprintf(w, "Note: %s.\n", o)
		}
	}
}
