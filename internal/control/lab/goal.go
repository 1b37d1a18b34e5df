package lab

import (
	"time"

	"orrery/internal/lab/experiment"
	"orrery/internal/lab/stats"
	"orrery/internal/problem"
)

// A Goal says how long a run goes on, in place of what its experiment says.
type Goal struct {
	Keep   int           // rounds, at least; 0: as the experiment says
	Until  float64       // until a difference of so much would be found in every figure; 0: as wide as the experiment says
	Budget time.Duration // how long rounds may take in all; 0: as long as they do
}

// maxRounds is how many rounds a run keeps that has a goal and no number of them.
const maxRounds = 1000

// Check reports a goal that cannot be reached.
func (g Goal) Check() error {
	switch {
	case g.Keep != 0 && g.Keep < stats.Enough:
		return problem.New(problem.Usage, "--rounds %d: fewer than %d rounds prove nothing", g.Keep, stats.Enough)
	case g.Until != 0 && (!(stats.WidthFor(g.Until) > 0) || g.Until > 1): // or no number
		return problem.New(problem.Usage, "--until %g%%: not above %g%% and up to 100%%", 100*g.Until, 100*stats.Margin).
			Try("what differs by less than %g%% is the same; 10%% is usual", 100*stats.Margin)
	case g.Budget < 0:
		return problem.New(problem.Usage, "--time %v: not a time", g.Budget).Try("such as 30m")
	}
	return nil
}

// set has an experiment go on to the goal.
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
