package screen

import (
	"io"
	"time"

	"orrery/internal/control"
	"orrery/internal/plan"
)

// An outlook tells how long a step took the last time; 0: that is not known.
type outlook func(*plan.Step) time.Duration

// NewProgress shows the steps of a plan: on a terminal as bars, otherwise as lines.
func NewProgress(w io.Writer, p *plan.Plan, took outlook) control.StepWatcher {
	if f, ok := Of(w); ok {
		return newBars(f, p, took)
	}
	return newLines(w, p, took)
}
