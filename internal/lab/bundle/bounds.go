package bundle

import (
	"fmt"
	"reflect"

	"orrery/internal/problem"
	"orrery/internal/text/sanitize"
)

// The maximum contents of a bundle. A run stays far below, but an untrusted bundle may contain
// anything.
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
	maxDamaged         = 1000      // after that many, reading stops
)

// lineBounds are the limits for a file of lines.
type lineBounds struct {
	bytes int64
	lines int
}

var (
	maxTrials  = lineBounds{128 << 20, 500_000}
	maxSeconds = lineBounds{256 << 20, 500_000}
)

// legal returns an error for a head that no run writes.
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

// legal returns an error for a trial that no run writes.
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

// within returns an error if there are more values than a report can have.
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

// shown returns a head whose texts are safe to show on terminals and pages. They may come from an
// untrusted bundle.
func (h Head) shown() Head {
	show(reflect.ValueOf(&h).Elem())
	return h
}

// shown returns a trial whose texts are safe to show. They contain output of nodes, which may have
// several lines.
func (t Trial) shown() Trial {
	why, output := sanitize.Text(t.Error), sanitize.Text(t.Output)
	show(reflect.ValueOf(&t).Elem())
	t.Error, t.Output = why, output
	return t
}

// show makes all strings within a value safe single lines. It does not change raw JSON.
func show(v reflect.Value) {
	switch v.Kind() {
	case reflect.String:
		v.SetString(sanitize.Line(v.String()))
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Field(i).CanSet() { // the fields of a time.Time cannot be set
				show(v.Field(i))
			}
		}
	case reflect.Slice:
		for i := range v.Len() {
			show(v.Index(i))
		}
	}
}
