package screen

import (
	"io"
	"time"

	"orrery/internal/control"
	"orrery/internal/plan"
)

// An outlook returns how long a step took last time, or 0 if unknown.
type outlook func(*plan.Step) time.Duration

// NewProgress shows the steps of a plan, on a terminal as bars and otherwise as lines.
func NewProgress(w io.Writer, p *plan.Plan, took outlook) control.StepWatcher {
	if f, ok := Of(w); ok {
		return newBars(f, p, took)
	}
	return newLines(w, p, took)
}
