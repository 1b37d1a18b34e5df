package screen

import (
	"fmt"
	"io"
	"orrery/internal/text/humanize"
	"orrery/internal/text/sanitize"
	"time"
)

// An Experiment shows how an experiment gets on: one line that changes on a terminal, otherwise a
// line for each round.
type Experiment struct {
	w      io.Writer
	live   Terminal // the terminal; nil: there is none
	round  int
	rounds int
	told   map[string]bool // tests in settings that have failed
	waits  bool            // for others, since the last round
}

// NewExperiment shows an experiment.
func NewExperiment(w io.Writer) *Experiment {
	l := &Experiment{w: w, told: map[string]bool{}}
	if f, ok := Of(w); ok {
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

// Trial is called when a trial begins; left is about what the whole run still takes.
func (l *Experiment) Trial(test, setting string, left time.Duration) {
	if l.live != nil {
		fmt.Fprintf(l.live, "\r\033[K%s: %s, %s; %s left", l.title(), sanitize.Line(test), sanitize.Line(setting),
			roughly(left))
	}
}

// Renewing is called when the nodes are made anew.
func (l *Experiment) Renewing(n int) {
	if l.live != nil {
		fmt.Fprintf(l.live, "\r\033[K%s done; making the nodes anew, instance %d", l.title(), n)
	}
}

// Waiting is called while others use the host. On a terminal the line changes; otherwise it is told
// once for each round.
func (l *Experiment) Waiting(why string, timeout time.Duration) {
	text := fmt.Sprintf("waiting for a quiet host: %s; at most %s more in all", why, roughly(timeout))
	switch {
	case l.live != nil:
		fmt.Fprintf(l.live, "\r\033[K%s", text)
	case !l.waits:
		fmt.Fprintln(l.w, text)
	}
	l.waits = true
}

// Failed is called when a test gave nothing in a setting. It is told once: the report has every
// reason, and what was printed.
func (l *Experiment) Failed(test, setting string, err error) {
	cell := fmt.Sprintf("test %s, setting %s", test, setting)
	if l.told[cell] {
		return
	}
	l.told[cell] = true
	l.Close()
	fmt.Fprintf(l.w, "orrery: %s: %v\n", cell, err)
}

// Close ends the line that changes.
func (l *Experiment) Close() {
	if l.live != nil {
		fmt.Fprint(l.live, "\r\033[K")
	}
}

// Resumed tells that a run goes on.
func (l *Experiment) Resumed(dir string, rounds int) {
	fmt.Fprintf(l.w, "resuming %s, which has %s so far (--fresh starts again)\n", dir, humanize.Count(rounds, "round"))
}

// Apart tells that a run is not gone on with.
func (l *Experiment) Apart(dir, why string) {
	fmt.Fprintf(l.w, "not resuming %s, which began under other conditions (%s); this run has a bundle of its own\n", dir,
		why)
}

// Watched tells what it took to watch the host.
func (l *Experiment) Watched(share float64) {
	fmt.Fprintf(l.w, "watching the host took %.2f %% of one processor\n", 100*share)
}

// roughly returns a duration as precisely as a guess is.
func roughly(d time.Duration) string {
	switch {
	case d < 90*time.Second:
		return fmt.Sprintf("%d s", int(d.Seconds()))
	case d < 90*time.Minute:
		return fmt.Sprintf("%d min", int(d.Minutes()+0.5))
	}
	return fmt.Sprintf("%.1f h", d.Hours())
}
