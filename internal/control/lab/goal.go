package lab

import (
	"time"

	"orrery/internal/lab/experiment"
	"orrery/internal/lab/stats"
	"orrery/internal/problem"
)

// A Goal says how long a run continues, in place of the experiment's own limits.
type Goal struct {
	Keep int // minimum number of rounds, or 0 for the experiment's number
	// until this relative difference would be detected in every figure, or 0 for the experiment's
	// width
	Until  float64
	Budget time.Duration // total time for rounds, or 0 for no limit
}

// maxRounds is the maximum number of rounds of a run that has a goal but no number of rounds.
const maxRounds = 1000

// Check returns an error if the goal cannot be reached.
func (g Goal) Check() error {
	switch {
	case g.Keep != 0 && g.Keep < stats.MinInstances:
		return problem.New(problem.Usage, "--rounds %d: fewer than %d rounds prove nothing", g.Keep, stats.MinInstances)
	case g.Until != 0 && (!(stats.WidthFor(g.Until) > 0) || g.Until > 1): // including NaN
		return problem.New(problem.Usage, "--until %g%%: must be above %g%% and at most 100%%", 100*g.Until,
			100*stats.Margin).
			Try("differences of less than %g%% do not count; 10%% is usual", 100*stats.Margin)
	case g.Budget < 0:
		return problem.New(problem.Usage, "--time %v: must not be negative", g.Budget).Try("use a duration such as 30m")
	}
	return nil
}

// set changes an experiment so that it continues until the goal.
func (g Goal) set(e *experiment.Experiment) error {
	if err := g.Check(); err != nil {
		return err
	}
	if g.Keep > 0 {
		e.Rounds, e.Most = g.Keep, max(g.Keep, e.Most)
	}
	if g.Until > 0 {
		e.Width, e.Most = stats.WidthFor(g.Until), maxRounds
	}
	if g.Budget > 0 {
		e.Most = maxRounds
	}
	return nil
}
