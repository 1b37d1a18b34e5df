package cli

import (
	"errors"
	"fmt"
	"time"

	"orrery/internal/cli/screen"
	"orrery/internal/control"
	"orrery/internal/plan"
	"orrery/internal/problem"
)

// A watcher shows how an operation goes: its steps and what is to be known at once on standard error, what was done on the way on standard output.
type watcher struct{ output }

// Steps shows the steps of a plan.
func (w watcher) Steps(p *plan.Plan, took func(*plan.Step) time.Duration) control.StepWatcher {
	return screen.NewProgress(w.err, p, took)
}

// Bytes shows how many bytes have been moved.
func (w watcher) Bytes(what string) control.ByteWatcher { return screen.NewMeter(w.err, what) }

// Tell shows an event.
func (w watcher) Tell(e control.Event) {
	var list problem.List
	switch {
	case e.Kind == control.Outcome:
		fmt.Fprintf(w.out, "%s.\n", e.Text)
	case e.Kind == control.Progress:
		fmt.Fprintln(w.err, e.Text)
	case e.Kind == control.Orphan:
		fmt.Fprintf(w.err, "Note: %s.\n", e.Text)
	case e.Kind == control.Notice:
		fmt.Fprintf(w.err, "orrery: %s.\n", e.Text)
	case errors.As(e.Err, &list) && e.Text == e.Err.Error():
		printError(w.err, e.Err)
	default:
		fmt.Fprintf(w.err, "orrery: %s\n", e.Text)
	}
}
