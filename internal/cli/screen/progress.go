package screen

import (
	"io"
	"time"

	"orrery/internal/control"
	"orrery/internal/plan"
)

// An estimator returns how long a step took last time, or 0 if unknown.
type estimator func(*plan.Step) time.Duration

// NewProgress shows the steps of a plan, on a terminal as bars and otherwise as lines.
func NewProgress(w io.Writer, p *plan.Plan, took estimator) control.StepWatcher {
	if f, ok := TerminalOf(w); ok {
		return newBars(f, p, took)
	}
	return newLines(w, p, took)
}
