package lab

import (
	"testing"
	"time"

	"orrery/internal/lab/bundle"
	"orrery/internal/lab/experiment"
	"orrery/internal/lab/report"
	"orrery/internal/lab/test"
	"orrery/internal/problem"
)

// TestGoal: a difference to detect sets the width, without a limit on rounds. A budget also removes
// that limit, and ends the run.
func TestGoal(t *testing.T) {
	for name, c := range map[string]struct {
		Goal
		rounds, most int
		narrower     bool
	}{
		"none":     {Goal{}, 10, 30, false},
		"rounds":   {Goal{Keep: 40}, 40, 40, false},
		"10 %":     {Goal{Until: 0.10}, 10, maxRounds, true},
		"20 %":     {Goal{Until: 0.20}, 10, maxRounds, false},
		"a time":   {Goal{Budget: time.Minute}, 10, maxRounds, false},
		"all":      {Goal{20, 0.10, time.Hour}, 20, maxRounds, true},
		"too near": {Goal{Until: 0.05}, 0, 0, false},
		"too few":  {Goal{Keep: 4}, 0, 0, false},
	} {
		e := &experiment.Experiment{Rounds: 10, Most: 30, Width: 0.06}
		err := c.set(e)
		if c.rounds == 0 {
			if problem.ExitCode(err) != int(problem.Usage) {
				t.Errorf("%s: %v", name, err)
			}
			continue
		}
		if err != nil || e.Rounds != c.rounds || e.Most != c.most || (e.Width < 0.06) != c.narrower || e.Width <= 0 {
			t.Errorf("%s: %+v, %v", name, e, err)
		}
	}
}

// TestBarren: a test that fails in all settings is an error, and one that fails in one setting is
// not.
func TestBarren(t *testing.T) {
	of := func(failing ...string) *report.Report {
		c := &bundle.Contents{Manifest: bundle.Manifest{
			Settings: []bundle.Setting{{Name: "bare"}, {Name: "bare again"}, {Name: "veth"}},
			Tests: []bundle.Test{{Name: "x", Kind: "command", Copies: 1,
				Figures: []test.Figure{{Name: "f", Unit: "s", Better: test.Less}}}},
		}}
		for _, s := range c.Manifest.Settings {
			trial := bundle.Trial{Round: 1, Instance: 1, Setting: s.Name, Test: "x",
				Samples: []test.Sample{{Figure: "f", Value: 1}}}
			for _, name := range failing {
				if name == s.Name {
					trial.Samples, trial.Error = nil, "no such program"
				}
			}
			c.Trials = append(c.Trials, trial)
		}
		return report.Analyse(c)
	}
	if err := checkFigures(of("veth")); err != nil {
		t.Error(err)
	}
	if err := checkFigures(of("bare", "bare again", "veth")); problem.ExitCode(err) != int(problem.Failed) {
		t.Errorf("%v", err)
	}
}
