package cli

import (
	"errors"
	"github.com/spf13/cobra"

	"orrery/internal/control/lab"
	"orrery/internal/lab/experiment"
	"orrery/internal/problem"
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
