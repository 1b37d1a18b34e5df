package trace

import (
	"cmp"
	"slices"

	"orrery/internal/lab/bundle"
	"orrery/internal/lab/test"
)

// A TimeSeries is a figure in a setting over the time of a trial. It has the median, minimum and maximum
// over the rounds at each step.
type TimeSeries struct {
	Test, Figure, Setting string
	Unit                  string
	Step                  float64 // seconds
	Median, Least, Most   []float64
}

// minSteps is the minimum length of a series for a plot.
const minSteps = 3

// OverTime combines the series of a bundle's trials, in the order of its tests, figures and
// settings.
func OverTime(c *bundle.Contents) (all []TimeSeries) {
	type key struct {
		test, setting string
		round, copy   int
	}
	last := map[key]bundle.Trial{} // if a round was repeated, the last attempt counts
	for _, t := range c.Trials {
		if len(t.Series) > 0 && t.Round > 0 && t.Error == "" {
			last[key{t.Test, t.Setting, t.Round, t.Copy}] = t
		}
	}
	if len(last) == 0 {
		return nil
	}
	rounds := 0
	for k := range last {
		rounds = max(rounds, k.round)
	}
	for _, t := range c.Manifest.Tests {
		for _, f := range t.Figures {
			for _, s := range c.Manifest.Settings {
				o := TimeSeries{Test: t.Name, Figure: f.Name, Setting: s.Name, Unit: f.Unit}
				var byRound [][]float64
				for round := 1; round <= rounds; round++ {
					var copies [][]float64
					for n := range max(t.Copies, 1) {
						values, step := seriesOf(last[key{t.Name, s.Name, round, n}], f.Name)
						if o.Step = cmp.Or(o.Step, step); len(values) > 0 && step == o.Step {
							copies = append(copies, values)
						}
					}
					if len(copies) == max(t.Copies, 1) {
						byRound = append(byRound, combineCopies(copies, f.Aggregate))
					}
				}
				if o.setSteps(byRound) {
					all = append(all, o)
				}
			}
		}
	}
	return all
}

func seriesOf(t bundle.Trial, figure string) (values []float64, step float64) {
	for _, s := range t.Series {
		if s.Figure == figure {
			return s.Values, s.Step
		}
	}
	return nil, 0
}

// combineCopies adds or averages the copies of a round, up to the length of the shortest.
func combineCopies(copies [][]float64, how test.Aggregate) []float64 {
	sum := slices.Clone(copies[0])
	for _, other := range copies[1:] {
		sum = sum[:min(len(sum), len(other))]
		for i := range sum {
			sum[i] += other[i]
		}
	}
	for i := range sum {
		if how != test.Sum {
			sum[i] /= float64(len(copies))
		}
	}
	return sum
}

// setSteps fills in the steps that at least half of the rounds have.
func (o *TimeSeries) setSteps(byRound [][]float64) bool {
	for i := 0; ; i++ {
		var values []float64
		for _, r := range byRound {
			if i < len(r) {
				values = append(values, r[i])
			}
		}
		if len(values) == 0 || 2*len(values) < len(byRound) {
			return i >= minSteps
		}
		slices.Sort(values)
		o.Median = append(o.Median, (values[(len(values)-1)/2]+values[len(values)/2])/2)
		o.Least, o.Most = append(o.Least, values[0]), append(o.Most, values[len(values)-1])
	}
}
