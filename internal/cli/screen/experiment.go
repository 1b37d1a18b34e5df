package screen

import (
	"fmt"
	"io"
	"orrery/internal/text/humanize"
	"orrery/internal/text/sanitize"
	"time"
)

// An Experiment shows the progress of an experiment. On a terminal it updates one line, and
// otherwise it prints a line for each round.
type Experiment struct {
	w      io.Writer
	live   Terminal // the terminal, or nil
	round  int
	rounds int
	told   map[string]bool // combinations of test and setting that have failed
	waits  bool            // has waited for a quiet host since the last round
}

// NewExperiment returns an Experiment that prints to w.
func NewExperiment(w io.Writer) *Experiment {
	l := &Experiment{w: w, told: map[string]bool{}}
	if f, ok := TerminalOf(w); ok {
		l.live = f
	}
	return l
}

// Round is called when a round begins. Round 0 is a rehearsal.
func (l *Experiment) Round(round, rounds int) {
	l.waits = false
	if l.round, l.rounds = round, rounds; l.live != nil {
		return
	}
	fmt.Fprintf(l.w, "%s\n", l.title())
}

func (l *Experiment) title() string {
	if l.round == 0 {
		return "rehearsal (does not count)"
	}
	return fmt.Sprintf("round %d of %d", l.round, l.rounds)
}

// Trial is called when a trial begins. Left is about how long the rest of the run takes.
func (l *Experiment) Trial(test, setting string, left time.Duration) {
	if l.live != nil {
		fmt.Fprintf(l.live, "\r\033[K%s: %s, %s; %s left", l.title(), sanitize.Line(test), sanitize.Line(setting),
			formatEstimate(left))
	}
}

// Renewing is called when the nodes are recreated.
func (l *Experiment) Renewing(n int) {
	if l.live != nil {
		fmt.Fprintf(l.live, "\r\033[K%s done; recreating the nodes, instance %d", l.title(), n)
	}
}

// Waiting is called while other programs use the host. On a terminal it updates the line, and
// otherwise it prints once for each round.
func (l *Experiment) Waiting(why string, timeout time.Duration) {
	text := fmt.Sprintf("waiting for a quiet host: %s; at most %s more in all", why, formatEstimate(timeout))
	switch {
	case l.live != nil:
		fmt.Fprintf(l.live, "\r\033[K%s", text)
	case !l.waits:
		fmt.Fprintln(l.w, text)
	}
	l.waits = true
}

// Failed is called when a test yielded nothing in a setting. It prints that only once, because the
// report has every reason and the output.
func (l *Experiment) Failed(test, setting string, err error) {
	cell := fmt.Sprintf("test %s, setting %s", test, setting)
	if l.told[cell] {
		return
	}
	l.told[cell] = true
	l.Close()
	fmt.Fprintf(l.w, "orrery: %s: %v\n", cell, err)
}

// Close ends the updated line.
func (l *Experiment) Close() {
	if l.live != nil {
		fmt.Fprint(l.live, "\r\033[K")
	}
}

// Resumed prints that a run is resumed.
func (l *Experiment) Resumed(dir string, rounds int) {
	fmt.Fprintf(l.w, "resuming %s, which has %s so far (--fresh starts again)\n", dir, humanize.Plural(rounds, "round"))
}

// NotResumed prints that a run is not resumed.
func (l *Experiment) NotResumed(dir, why string) {
	fmt.Fprintf(l.w, "not resuming %s, which began under other conditions (%s); this run gets a new bundle\n", dir,
		why)
}

// ObserverCost prints the cost of observing the host.
func (l *Experiment) ObserverCost(share float64) {
	fmt.Fprintf(l.w, "watching the host took %.2f %% of one processor\n", 100*share)
}

// formatEstimate formats a duration with the precision of an estimate.
func formatEstimate(d time.Duration) string {
	switch {
	case d < 90*time.Second:
		return fmt.Sprintf("%d s", int(d.Seconds()))
	case d < 90*time.Minute:
		return fmt.Sprintf("%d min", int(d.Minutes()+0.5))
	}
	return fmt.Sprintf("%.1f h", d.Hours())
}
