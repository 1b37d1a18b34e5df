package verb

import (
	"errors"
	"fmt"
	"time"

	"orrery/internal/cli/screen"
	"orrery/internal/control"
	"orrery/internal/plan"
	"orrery/internal/problem"
)

// A Watcher prints the progress of an operation. Steps and messages go to standard error, and what
// was done on the way goes to standard output.
type Watcher struct{ Output }

// Steps displays the steps of a plan.
func (w Watcher) Steps(p *plan.Plan, took func(*plan.Step) time.Duration) control.StepWatcher {
	return screen.NewProgress(w.Err, p, took)
}

// Bytes displays how many bytes have been moved.
func (w Watcher) Bytes(what string) control.ByteWatcher { return screen.NewMeter(w.Err, what) }

// Event prints an event.
func (w Watcher) Event(e control.Event) {
	var list problem.List
	switch {
	case e.Kind == control.Outcome:
		fmt.Fprintf(w.Out, "%s.\n", e.Text)
	case e.Kind == control.Progress:
		fmt.Fprintln(w.Err, e.Text)
	case e.Kind == control.Orphan:
		fmt.Fprintf(w.Err, "Note: %s.\n", e.Text)
	case e.Kind == control.Notice:
		screen.Paint(w.Err, "orrery:", screen.Warn)
		fmt.Fprintf(w.Err, " %s.\n", e.Text)
	case errors.As(e.Err, &list) && e.Text == e.Err.Error():
		PrintError(w.Err, e.Err)
	default:
		screen.Paint(w.Err, "orrery:", screen.Bad)
		fmt.Fprintf(w.Err, " %s\n", e.Text)
	}
}
