package micro

import (
	"fmt"
	"math"

	"orrery/internal/lab/test"
	"orrery/internal/problem"
)

// A Line is the output of orrery-micro for one measurement.
type Line struct {
	Name    string  `json:"name"`
	Unit    string  `json:"unit"` // "s" or "B/s"
	Min     float64 `json:"min"`  // of the batches
	Median  float64 `json:"median"`
	Max     float64 `json:"max"`
	Batches int     `json:"batches"`
	Reps    uint64  `json:"reps"` // per batch
}

// best returns the figure. It is that of the best batch, which was disturbed least.
func (l Line) best() float64 {
	if l.Unit == "B/s" {
		return l.Max
	}
	return l.Min
}

// Parse parses the output of `orrery-micro run`.
func Parse(out []byte) ([]Line, error) {
	var all []Line
	err := test.JSONLines(out, func(l Line) error {
		all = append(all, l)
		return l.check()
	})
	if err != nil {
		return nil, broken("%v", err)
	}
	return all, nil
}

func (l Line) check() error {
	switch {
	case l.Name == "":
		return fmt.Errorf("the name is missing")
	case l.Unit != "s" && l.Unit != "B/s":
		return fmt.Errorf("%s: unit %q is unknown", l.Name, l.Unit)
	case l.Batches < 1 || l.Reps < 1:
		return fmt.Errorf("%s: nothing was measured", l.Name)
	case !(l.Min > 0 && l.Min <= l.Median && l.Median <= l.Max) || math.IsInf(l.Max, 0):
		return fmt.Errorf("%s: %g, %g and %g are not minimum, median and maximum", l.Name, l.Min, l.Median, l.Max)
	}
	return nil
}

// samples finds each figure in the output.
func (p part) samples(out []byte) ([]test.Sample, error) {
	lines, err := Parse(out)
	if err != nil {
		return nil, err
	}
	found := map[string]Line{}
	for _, l := range lines {
		found[l.Name] = l
	}
	var all []test.Sample
	for _, r := range p.rows {
		l, ok := found[r.name]
		if !ok {
			return nil, broken("measurement %s is missing", r.name)
		}
		if l.Unit != r.Unit {
			return nil, broken("measurement %s has the unit %s instead of %s", r.name, l.Unit, r.Unit)
		}
		all = append(all, test.Sample{Figure: p.figure(r).Name, Value: l.best()})
	}
	return all, nil
}

func broken(format string, args ...any) error {
	return problem.New(problem.Failed, "output of orrery-micro: "+format, args...).
		Try("build it again: make bin/orrery-micro")
}
