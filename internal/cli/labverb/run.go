package labverb

import (
	"bytes"
	"errors"

	"github.com/spf13/cobra"

	"orrery/internal/cli/screen"
	"orrery/internal/cli/verb"
	"orrery/internal/control"
	"orrery/internal/control/lab"
)

func run(call *verb.Call) *cobra.Command {
	var to, on string
	var flags *goalFlags
	var fresh, show bool
	var only []string
	c := &cobra.Command{
		Use:   "run [EXPERIMENT]",
		Short: "Run an experiment (default: compare a container to the bare host)",
		Long: `Creates the settings of an experiment, runs its tests in all of them in turn,
removes the settings and writes a report. If a run was interrupted or killed,
run the same command to resume.`,
		Example: "  orrery lab run\n  orrery lab run lab/disk.toml --until 10% --time 30m\n  orrery lab run --repeat 3",
		Args:    cobra.MaximumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			e, err := readExperiment(args, on)
			if err != nil {
				return err
			}
			if show {
				_, err := call.Out.Write(e.Text)
				return err
			}
			if e, err = e.WithTests(only); err != nil {
				return err
			}
			goal, err := flags.parse()
			if err != nil {
				return err
			}
			return flags.runRepeatedly(call.Out, lab.Options{Experiment: e, To: to, Goal: goal, Fresh: fresh,
				Orrery: call.Session.Version}, func(o lab.Options) (*lab.StoredReport, error) {
				made, err := lab.RunOn(c.Context(), call.Session, labWatch{screen.NewExperiment(call.Err), call.Output}, on, o)
				return made, errors.Join(err, printWritten(call.Out, made))
			})
		},
	}
	c.Flags().StringVar(&to, "to", "", "write the bundle to this `directory` (default: a new one)")
	c.Flags().StringVar(&on, "host", "", "run on this `host` of the site, and copy the bundle here")
	c.Flags().StringSliceVar(&only, "only", nil, "run only these `tests` of the experiment")
	flags = addGoal(c)
	c.Flags().BoolVar(&fresh, "fresh", false, "start again, even if an earlier run was interrupted")
	c.Flags().BoolVar(&show, "show", false, "print the experiment instead of running it")
	return c
}

// A labWatch shows the progress of an experiment and of creating its nodes.
type labWatch struct {
	*screen.Experiment
	verb.Output
}

// Deferred stores the output about nodes that are recreated.
func (l labWatch) Deferred() (w control.Watcher, show func()) {
	var said bytes.Buffer
	return verb.Watcher{Output: verb.Output{Out: l.Out, Err: &said}}, func() { _, _ = l.Err.Write(said.Bytes()) }
}
