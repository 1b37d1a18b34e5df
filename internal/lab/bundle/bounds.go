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
	maxManifestBytes   = 4 << 20
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

// validate returns an error for a head that no run writes.
func (h *Manifest) validate() error {
	if len(h.Settings) > maxSettings || len(h.Tests) > maxTests || h.countFigures() > maxFigures {
		return fmt.Errorf("%d settings, %d tests and %d figures are more than any run has", len(h.Settings), len(h.Tests),
			h.countFigures())
	}
	return nil
}

func (h *Manifest) countFigures() (n int) {
	for _, t := range h.Tests {
		n += len(t.Figures)
	}
	return n
}

// validate returns an error for a trial that no run writes.
func (t *Trial) validate() error {
	if t.Round < 0 || t.Round > maxRounds || t.Copy < 0 || t.Slot < 0 || t.Instance < 0 {
		return fmt.Errorf("round %d, slot %d, copy %d, instance %d is impossible", t.Round, t.Slot, t.Copy, t.Instance)
	}
	for _, s := range t.Series {
		if !(s.Step > 0 && s.Step <= 1e6) || len(s.Values) > maxSteps {
			return fmt.Errorf("a series of %d values, one every %g s, is impossible", len(s.Values), s.Step)
		}
	}
	return nil
}

// checkValues returns an error if there are more values than a report can have.
func (c *Contents) checkValues() error {
	last := 0
	for _, t := range c.Trials {
		last = max(last, t.Round)
	}
	if n := c.Manifest.countFigures() * len(c.Manifest.Settings) * last; n > maxValues {
		return problem.New(problem.Failed, "the bundle has %d figures, %d settings and %d rounds, too many for one report",
			c.Manifest.countFigures(),
			len(c.Manifest.Settings), last).At(c.Dir).Try("check that orrery lab run wrote it")
	}
	return nil
}

// sanitized returns a head whose texts are safe to show on terminals and pages. They may come from an
// untrusted bundle.
func (h Manifest) sanitized() Manifest {
	sanitizeStrings(reflect.ValueOf(&h).Elem())
	return h
}

// sanitized returns a trial whose texts are safe to show. They contain output of nodes, which may have
// several lines.
func (t Trial) sanitized() Trial {
	why, output := sanitize.Text(t.Error), sanitize.Text(t.Output)
	sanitizeStrings(reflect.ValueOf(&t).Elem())
	t.Error, t.Output = why, output
	return t
}

// sanitizeStrings makes all strings within a value safe single lines. It does not change raw JSON.
func sanitizeStrings(v reflect.Value) {
	switch v.Kind() {
	case reflect.String:
		v.SetString(sanitize.Line(v.String()))
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Field(i).CanSet() { // the fields of a time.Time cannot be set
				sanitizeStrings(v.Field(i))
			}
		}
	case reflect.Slice:
		for i := range v.Len() {
			sanitizeStrings(v.Index(i))
		}
	}
}
