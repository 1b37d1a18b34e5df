package cli

import (
	"io"
	"time"

	"orrery/internal/control"
	"orrery/internal/plan"
)

// An outlook tells how long a step took the last time; 0: that is not known.
type outlook func(*plan.Step) time.Duration

func newProgress(w io.Writer, p *plan.Plan, took outlook) control.StepWatcher {
	if f, ok := screen(w); ok {
		return newBars(f, p, took)
	}
	return newLines(w, p, took)
}
