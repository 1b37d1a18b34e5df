package cli

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/spf13/cobra"

	"orrery/internal/cli/screen"
	"orrery/internal/control"
	"orrery/internal/control/lab"
	"orrery/internal/lab/experiment"
	"orrery/internal/phrase"
	"orrery/internal/problem"
	"orrery/internal/visible"
)

func (a *app) labRunVerb() *cobra.Command {
	var to string
	var rounds int
	var fresh, show bool
	c := &cobra.Command{
		Use:   "run [EXPERIMENT]",
		Short: "Run an experiment; without a file, compare a container with the bare host",
		Long: `Makes the settings of an experiment, runs its tests in all of them in turn, removes the settings and writes a report.
If a run was interrupted or killed, run the same command to resume.`,
		Example: "  orrery lab run\n  orrery lab run lab/disk.toml --rounds 20",
		Args:    cobra.MaximumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			e, err := experimentOf(args)
			if err != nil {
				return err
			}
			if show {
				_, err := a.out.Write(e.Text)
				return err
			}
			if c.Flags().Changed("rounds") {
				if rounds < 5 {
					return problem.New(problem.Usage, "--rounds %d: fewer than 5 rounds tell nothing", rounds)
				}
				e.Rounds, e.Most = rounds, max(rounds, e.Most)
			}
			made, err := lab.Run(c.Context(), &a.Session, newLabWatch(a), lab.Options{Experiment: e, To: to, Fresh: fresh, Orrery: Version})
			return errors.Join(err, a.tellWritten(made))
		},
	}
	c.Flags().StringVar(&to, "to", "", "the `directory` of the bundle (default: one of its own where orrery lab ls looks)")
	c.Flags().IntVar(&rounds, "rounds", 0, "keep at least this many rounds")
	c.Flags().BoolVar(&fresh, "fresh", false, "start again, even if a run of this experiment was interrupted")
	c.Flags().BoolVar(&show, "show", false, "print the experiment instead of running it")
	return c
}

// experimentOf reads the experiment that is meant: the file that is named, or the one that comes with Orrery.
func experimentOf(args []string) (*experiment.Experiment, error) {
	if len(args) == 0 {
		return experiment.Default(), nil
	}
	return experiment.Read(args[0])
}

// A labWatch shows how an experiment gets on: one line that changes on a terminal, otherwise a line for each round.
type labWatch struct {
	a      *app
	w      io.Writer
	live   *os.File // the terminal; nil: there is none
	round  int
	rounds int
	told   map[string]bool // tests in settings that have failed
	waits  bool            // for others, since the last round
}

func newLabWatch(a *app) *labWatch {
	l := &labWatch{a: a, w: a.err, told: map[string]bool{}}
	if f, ok := screen.Of(a.err); ok {
		l.live = f
	}
	return l
}

// Round is called when a round begins. Round 0 is a rehearsal.
func (l *labWatch) Round(round, rounds int) {
	l.waits = false
	if l.round, l.rounds = round, rounds; l.live != nil {
		return
	}
	fmt.Fprintf(l.w, "%s\n", l.title())
}

func (l *labWatch) title() string {
	if l.round == 0 {
		return "rehearsal (does not count)"
	}
	return fmt.Sprintf("round %d of %d", l.round, l.rounds)
}

// Trial is called when a trial begins; left is about what the whole run still takes.
func (l *labWatch) Trial(test, setting string, left time.Duration) {
	if l.live != nil {
		fmt.Fprintf(l.live, "\r\033[K%s: %s, %s; %s left", l.title(), visible.Line(test), visible.Line(setting), roughly(left))
	}
}

// Renewing is called when the nodes are made anew.
func (l *labWatch) Renewing(n int) {
	if l.live != nil {
		fmt.Fprintf(l.live, "\r\033[K%s done; making the nodes anew, instance %d", l.title(), n)
	}
}

// Waiting is called while others use the host. On a terminal the line changes; otherwise it is told once for each round.
func (l *labWatch) Waiting(why string, patience time.Duration) {
	text := fmt.Sprintf("waiting for a quiet host: %s; at most %s more in all", why, roughly(patience))
	switch {
	case l.live != nil:
		fmt.Fprintf(l.live, "\r\033[K%s", text)
	case !l.waits:
		fmt.Fprintln(l.w, text)
	}
	l.waits = true
}

// Failed is called when a test gave nothing in a setting. It is told once: the report has every reason, and what was printed.
func (l *labWatch) Failed(test, setting string, err error) {
	cell := fmt.Sprintf("test %s, setting %s", test, setting)
	if l.told[cell] {
		return
	}
	l.told[cell] = true
	l.Close()
	fmt.Fprintf(l.w, "orrery: %s: %v\n", cell, err)
}

// Close ends the line that changes.
func (l *labWatch) Close() {
	if l.live != nil {
		fmt.Fprint(l.live, "\r\033[K")
	}
}

// Resumed tells that a run goes on.
func (l *labWatch) Resumed(dir string, rounds int) {
	fmt.Fprintf(l.w, "going on with %s, which has %s so far (--fresh begins anew)\n", dir, phrase.Count(rounds, "round"))
}

// Watched tells what it took to watch the host.
func (l *labWatch) Watched(share float64) {
	fmt.Fprintf(l.w, "watching the host took %.2f %% of one processor\n", 100*share)
}

// Aside keeps what is shown of nodes that are made anew.
func (l *labWatch) Aside() (w control.Watcher, show func()) {
	var said bytes.Buffer
	quiet := l.a.another()
	quiet.err = &said
	return quiet.Watcher, func() { _, _ = l.w.Write(said.Bytes()) }
}

// roughly gives a duration as precisely as a guess is.
func roughly(d time.Duration) string {
	switch {
	case d < 90*time.Second:
		return fmt.Sprintf("%d s", int(d.Seconds()))
	case d < 90*time.Minute:
		return fmt.Sprintf("%d min", int(d.Minutes()+0.5))
	}
	return fmt.Sprintf("%.1f h", d.Hours())
}
