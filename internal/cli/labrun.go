package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"orrery/internal/cli/screen"
	"orrery/internal/control"
	"orrery/internal/control/lab"
	"orrery/internal/lab/experiment"
	"orrery/internal/problem"
)

func (a *app) labRunVerb() *cobra.Command {
	var to, on, until string
	var goal lab.Goal
	var repeat int
	var fresh, show bool
	c := &cobra.Command{
		Use:   "run [EXPERIMENT]",
		Short: "Run an experiment; without a file, compare a container with the bare host",
		Long: `Makes the settings of an experiment, runs its tests in all of them in turn, removes the settings and writes a report.
If a run was interrupted or killed, run the same command to resume.`,
		Example: "  orrery lab run\n  orrery lab run lab/disk.toml --until 10% --time 30m\n  orrery lab run --repeat 3",
		Args:    cobra.MaximumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			e := experiment.Default()
			if len(args) > 0 {
				var err error
				if e, err = experiment.Read(args[0]); err != nil {
					return err
				}
			}
			if show {
				_, err := a.out.Write(e.Text)
				return err
			}
			var err error
			if goal.Until, err = difference(until); err != nil {
				return err
			}
			if c.Flags().Changed("rounds") && goal.Keep == 0 {
				goal.Keep = -1 // 0 would be as the file says
			}
			if err := goal.Check(); err != nil {
				return err
			}
			if repeat < 1 || repeat > maxRepeat {
				return problem.New(problem.Usage, "--repeat %d: not from 1 to %d", repeat, maxRepeat)
			}
			return a.labRuns(c.Context(), on, lab.Options{Experiment: e, To: to, Goal: goal, Fresh: fresh, Orrery: Version}, repeat)
		},
	}
	c.Flags().StringVar(&to, "to", "", "the `directory` of the bundle (default: one of its own where orrery lab ls looks)")
	c.Flags().StringVar(&on, "host", "", "run it on this `host` of the site; the bundle comes here")
	c.Flags().IntVar(&goal.Keep, "rounds", 0, "keep at least this many rounds")
	c.Flags().StringVar(&until, "until", "", "go on until a `difference` such as 10% would be found")
	c.Flags().DurationVar(&goal.Budget, "time", 0, "begin no round that would end after this time")
	c.Flags().IntVar(&repeat, "repeat", 1, "run it this many times, for orrery lab compare")
	c.Flags().BoolVar(&fresh, "fresh", false, "start again, even if a run of this experiment was interrupted")
	c.Flags().BoolVar(&show, "show", false, "print the experiment instead of running it")
	return c
}

// maxRepeat bounds how many runs are made one after another.
const maxRepeat = 100

// labRuns runs an experiment several times, each into a bundle of its own.
func (a *app) labRuns(ctx context.Context, on string, o lab.Options, repeat int) error {
	var made []string
	to := o.To
	asked := *o.Experiment
	for n := 1; n <= repeat; n++ {
		if to != "" && repeat > 1 {
			o.To = fmt.Sprintf("%s-%d", to, n)
		}
		e := asked // a run fits it to the host
		o.Experiment = &e
		one, err := lab.RunOn(ctx, &a.Session, labWatch{screen.NewExperiment(a.err), a}, on, o)
		if err = errors.Join(err, a.tellWritten(one)); err != nil {
			return err
		}
		made = append(made, one.Dir)
	}
	if repeat > 1 {
		fmt.Fprintf(a.out, "\n%d runs. Compare them with runs after a change:\n  orrery lab compare %s -- AFTER…\n", repeat, strings.Join(made, " "))
	}
	return nil
}

// difference reads one such as 10%; 0 if none was written.
func difference(text string) (float64, error) {
	if text == "" {
		return 0, nil
	}
	percent, err := strconv.ParseFloat(strings.TrimSuffix(text, "%"), 64)
	if err != nil || percent == 0 {
		return 0, problem.New(problem.Usage, "--until %s: not a difference", text).Try("such as 10%%")
	}
	return percent / 100, nil
}

// A labWatch shows how an experiment gets on, and how its nodes are made.
type labWatch struct {
	*screen.Experiment
	*app
}

// Aside keeps what is shown of nodes that are made anew.
func (l labWatch) Aside() (w control.Watcher, show func()) {
	var said bytes.Buffer
	quiet := l.another()
	quiet.err = &said
	return quiet.Watcher, func() { _, _ = l.err.Write(said.Bytes()) }
}
