package bundle

import (
	"fmt"
	"reflect"

	"orrery/internal/problem"
	"orrery/internal/text/sanitize"
)

// What a bundle may hold at most. A run leaves far less; who sends one may have written anything.
const (
	maxHeadBytes       = 4 << 20
	maxFactsBytes      = 1 << 20
	maxExperimentBytes = 1 << 20
	maxRounds          = 1000
	maxSettings        = 256
	maxTests           = 10_000
	maxFigures         = 20_000    // of all tests
	maxValues          = 2_000_000 // figures × settings × rounds
	maxSteps           = 100_000   // of a series
	maxDamaged         = 1000      // after so many, no more is read
)

// lineBounds are of a file of lines.
type lineBounds struct {
	bytes int64
	lines int
}

var (
	maxTrials  = lineBounds{128 << 20, 500_000}
	maxSeconds = lineBounds{256 << 20, 500_000}
)

// legal reports a head that no run writes.
func (h *Head) legal() error {
	if len(h.Settings) > maxSettings || len(h.Tests) > maxTests || h.figures() > maxFigures {
		return fmt.Errorf("it has %d settings, %d tests and %d figures, more than any run", len(h.Settings), len(h.Tests),
			h.figures())
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
	if t.Round < 0 || t.Round > maxRounds || t.Copy < 0 || t.Slot < 0 || t.Instance < 0 {
		return fmt.Errorf("round %d, slot %d, copy %d, instance %d cannot be", t.Round, t.Slot, t.Copy, t.Instance)
	}
	for _, s := range t.Series {
		if !(s.Step > 0 && s.Step <= 1e6) || len(s.Values) > maxSteps {
			return fmt.Errorf("a series of %d values, one in %g s, cannot be", len(s.Values), s.Step)
		}
	}
	return nil
}

// within reports more values than a report is made of.
func (c *Contents) within() error {
	last := 0
	for _, t := range c.Trials {
		last = max(last, t.Round)
	}
	if n := c.Head.figures() * len(c.Head.Settings) * last; n > maxValues {
		return problem.New(problem.Failed, "the bundle has %d figures, %d settings and %d rounds: too much for one report",
			c.Head.figures(),
			len(c.Head.Settings), last).At(c.Dir).Try("is it what orrery lab run left?")
	}
	return nil
}

// shown returns a head whose words can be shown: they come from whoever wrote the bundle, and go to
// terminals and pages.
func (h Head) shown() Head {
	show(reflect.ValueOf(&h).Elem())
	return h
}

// shown returns a trial whose words can be shown: nodes have printed them, some of them in several lines.
func (t Trial) shown() Trial {
	why, output := sanitize.Text(t.Error), sanitize.Text(t.Output)
	show(reflect.ValueOf(&t).Elem())
	t.Error, t.Output = why, output
	return t
}

// show makes all words within a value lines that can be shown. Raw JSON stays as it is.
func show(v reflect.Value) {
	switch v.Kind() {
	case reflect.String:
		v.SetString(sanitize.Line(v.String()))
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Field(i).CanSet() { // what a time is made of cannot
				show(v.Field(i))
			}
		}
	case reflect.Slice:
		for i := range v.Len() {
			show(v.Index(i))
		}
	}
}
