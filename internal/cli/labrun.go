package cli

import (
	"bytes"
	"errors"

	"github.com/spf13/cobra"

	"orrery/internal/cli/screen"
	"orrery/internal/control"
	"orrery/internal/control/lab"
	"orrery/internal/lab/experiment"
	"orrery/internal/problem"
)

func (a *app) labRunVerb() *cobra.Command {
	var to, on string
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
			e := experiment.Default()
			if len(args) > 0 {
				var err error
				if e, err = lab.Read(args[0], on); err != nil {
					return err
				}
			}
			if show {
				_, err := a.out.Write(e.Text)
				return err
			}
			if c.Flags().Changed("rounds") && rounds < 5 {
				return problem.New(problem.Usage, "--rounds %d: fewer than 5 rounds prove nothing", rounds)
			}
			made, err := lab.RunOn(c.Context(), &a.Session, labWatch{screen.NewExperiment(a.err), a}, on,
				lab.Options{Experiment: e, To: to, Keep: rounds, Fresh: fresh, Orrery: Version})
			return errors.Join(err, a.tellWritten(made))
		},
	}
	c.Flags().StringVar(&to, "to", "", "the `directory` of the bundle (default: one of its own where orrery lab ls looks)")
	c.Flags().StringVar(&on, "host", "", "run it on this `host` of the site; the bundle comes here")
	c.Flags().IntVar(&rounds, "rounds", 0, "keep at least this many rounds")
	c.Flags().BoolVar(&fresh, "fresh", false, "start again, even if a run of this experiment was interrupted")
	c.Flags().BoolVar(&show, "show", false, "print the experiment instead of running it")
	return c
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
