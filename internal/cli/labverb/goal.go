package labverb

import (
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"orrery/internal/control/lab"
	"orrery/internal/lab/experiment"
	"orrery/internal/problem"
)

// maxRepeat is the maximum number of repeated runs.
const maxRepeat = 100

// goalFlags are the flags of `lab run` that set how long and how often it measures.
type goalFlags struct {
	command *cobra.Command
	goal    lab.Goal
	until   string
	repeat  int
}

// addGoal adds the flags to a command.
func addGoal(c *cobra.Command) *goalFlags {
	f := &goalFlags{command: c}
	c.Flags().IntVar(&f.goal.Keep, "rounds", 0, "keep at least this many rounds")
	c.Flags().StringVar(&f.until, "until", "", "continue until a `difference` such as 10% would be found")
	c.Flags().DurationVar(&f.goal.Budget, "time", 0, "begin no round that would end after this time")
	c.Flags().IntVar(&f.repeat, "repeat", 1, "run it this many times, for orrery lab compare")
	return f
}

// readExperiment reads the named experiment, for a host of the site or for this machine. Without a
// name, it returns Orrery's default experiment.
func readExperiment(args []string, on string) (*experiment.Experiment, error) {
	if len(args) == 0 {
		return experiment.Default(), nil
	}
	return lab.Read(args[0], on)
}

// parse returns the goal set by the flags.
func (f *goalFlags) parse() (g lab.Goal, err error) {
	g = f.goal
	if g.Until, err = parseDifference(f.until); err != nil {
		return g, err
	}
	if f.command.Flags().Changed("rounds") && g.Keep == 0 {
		g.Keep = -1 // 0 would mean the experiment's own number
	}
	if f.repeat < 1 || f.repeat > maxRepeat {
		return g, problem.New(problem.Usage, "--repeat %d: the number is not from 1 to %d", f.repeat, maxRepeat)
	}
	return g, g.Check()
}

// runRepeatedly runs an experiment as often as requested, each time with a new bundle. Then it prints
// how to compare the runs.
func (f *goalFlags) runRepeatedly(out io.Writer, o lab.Options,
	run func(lab.Options) (*lab.StoredReport, error)) error {
	var made []string
	to, asked := o.To, *o.Experiment
	for n := 1; n <= f.repeat; n++ {
		if to != "" && f.repeat > 1 {
			o.To = fmt.Sprintf("%s-%d", to, n)
		}
		o.Experiment = new(experiment.Experiment)
		*o.Experiment = asked // a run adapts it to the host
		one, err := run(o)
		if err != nil {
			return err
		}
		made = append(made, one.Dir)
	}
	if f.repeat > 1 {
		_, _ = fmt.Fprintf(out, "\n%d runs. Compare them with runs after a change:\n  orrery lab compare %s -- AFTER…\n",
			f.repeat, strings.Join(made, " "))
	}
	return nil
}

// parseDifference parses a difference such as 10%, or returns 0 for an empty text.
func parseDifference(text string) (float64, error) {
	if text == "" {
		return 0, nil
	}
	percent, err := strconv.ParseFloat(strings.TrimSuffix(text, "%"), 64)
	if err != nil || percent <= 0 {
		return 0, problem.New(problem.Usage, "--until %s: not a difference", text).Try("use a value such as 10%%")
	}
	return percent / 100, nil
}
