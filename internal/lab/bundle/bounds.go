package bundle

import (
	"fmt"

	"orrery/internal/lab/test"
	"orrery/internal/problem"
	"orrery/internal/visible"
)

// What a bundle may hold at most. A run leaves far less; who sends one may have written anything.
const (
	mostHead       = 4 << 20
	mostFacts      = 1 << 20
	mostExperiment = 1 << 20
	mostRounds     = 1000
	mostSettings   = 256
	mostTests      = 10_000
	mostFigures    = 20_000    // of all tests
	mostValues     = 2_000_000 // figures × settings × rounds
	mostDamaged    = 1000      // after so many, no more is read
)

// lineBounds are of a file of lines.
type lineBounds struct {
	bytes int64
	lines int
}

var (
	mostTrials  = lineBounds{128 << 20, 500_000}
	mostSeconds = lineBounds{256 << 20, 500_000}
)

// legal reports a head that no run writes.
func (h *Head) legal() error {
	if len(h.Settings) > mostSettings || len(h.Tests) > mostTests || h.figures() > mostFigures {
		return fmt.Errorf("it has %d settings, %d tests and %d figures, more than any run", len(h.Settings), len(h.Tests), h.figures())
	}
	return nil
}

func (h *Head) figures() (n int) {
	for _, t := range h.Tests {
		n += len(t.Figures)
	}
	return n
}

// legal reports a trial that no run writes.
func (t *Trial) legal() error {
	if t.Round < 0 || t.Round > mostRounds || t.Copy < 0 || t.Slot < 0 || t.Instance < 0 {
		return fmt.Errorf("round %d, slot %d, copy %d, instance %d cannot be", t.Round, t.Slot, t.Copy, t.Instance)
	}
	return nil
}

// within reports more values than a report is made of.
func (c *Contents) within() error {
	last := 0
	for _, t := range c.Trials {
		last = max(last, t.Round)
	}
	if n := c.Head.figures() * len(c.Head.Settings) * last; n > mostValues {
		return problem.New(problem.Failed, "the bundle has %d figures, %d settings and %d rounds: too much for one report", c.Head.figures(),
			len(c.Head.Settings), last).At(c.Dir).Try("is it what orrery lab run left?")
	}
	return nil
}

// shown gives a head whose words can be shown: they come from whoever wrote the bundle, and go to terminals and pages.
func (h Head) shown() Head {
	for _, word := range []*string{&h.Orrery, &h.ID, &h.Experiment, &h.Title, &h.Source, &h.Digest, &h.Host, &h.Who, (*string)(&h.State)} {
		*word = visible.Line(*word)
	}
	for i := range h.Settings {
		s := &h.Settings[i]
		s.Name, s.About, s.Missing, s.Again = visible.Line(s.Name), visible.Line(s.About), visible.Line(s.Missing), visible.Line(s.Again)
		shownLines(s.Nodes)
	}
	for i := range h.Tests {
		t := &h.Tests[i]
		t.Name, t.Kind, t.Source = visible.Line(t.Name), visible.Line(t.Kind), visible.Line(t.Source)
		for k := range t.Figures {
			f := &t.Figures[k]
			f.Name, f.Unit, f.Better = visible.Line(f.Name), visible.Line(f.Unit), test.Better(visible.Line(string(f.Better)))
		}
	}
	return h
}

// shown gives a trial whose words can be shown: nodes have printed them.
func (t Trial) shown() Trial {
	t.Setting, t.Test, t.Error, t.Output = visible.Line(t.Setting), visible.Line(t.Test), visible.Text(t.Error), visible.Text(t.Output)
	for i := range t.Samples {
		t.Samples[i].Figure = visible.Line(t.Samples[i].Figure)
	}
	for i := range t.Labels {
		l := &t.Labels[i]
		l.Name, l.Why, l.Cure, l.Where = visible.Line(l.Name), visible.Line(l.Why), visible.Line(l.Cure), visible.Line(l.Where)
	}
	return t
}

func shownLines(all []string) {
	for i := range all {
		all[i] = visible.Line(all[i])
	}
}
