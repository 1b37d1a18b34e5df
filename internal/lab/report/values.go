package report

import (
	"cmp"
	"slices"

	"orrery/internal/lab/bundle"
	"orrery/internal/lab/report/quantity"
	"orrery/internal/lab/test"
)

// samples holds the trials of a bundle by test, setting, round and copy. If a round was repeated
// after an interruption, the last attempt counts.
type samples struct {
	trials    map[cellKey][]bundle.Trial // sorted by round and copy
	kept      int                        // number of the last round
	instances []int                      // instance of the nodes, by kept round
}

type cellKey struct{ test, setting string }

func collect(trials []bundle.Trial) samples {
	type key struct {
		cellKey
		round, copy int
	}
	last := map[key]bundle.Trial{}
	s := samples{trials: map[cellKey][]bundle.Trial{}}
	for _, t := range trials {
		last[key{cellKey{t.Test, t.Setting}, t.Round, t.Copy}] = t
		s.kept = max(s.kept, t.Round)
	}
	for k, t := range last {
		s.trials[k.cellKey] = append(s.trials[k.cellKey], t)
	}
	s.instances = make([]int, s.kept)
	for _, all := range s.trials {
		slices.SortFunc(all, func(a, b bundle.Trial) int { return cmp.Or(a.Round-b.Round, a.Copy-b.Copy) })
		for _, t := range all {
			if t.Round > 0 { // if a round was resumed, the later instance finished it
				s.instances[t.Round-1] = max(s.instances[t.Round-1], t.Instance)
			}
		}
	}
	return s
}

// figureValues returns the values of a figure in a setting: one for each kept round with its copies combined,
// and those of single copies. A round in which a copy failed has no value, because the other copies
// ran on a less busy machine.
func (s samples) figureValues(t bundle.Test, f test.Figure, setting string) (byRound []quantity.Number,
	single []float64) {
	copies := make([][]float64, s.kept)
	for _, trial := range s.trials[cellKey{t.Name, setting}] {
		if trial.Round == 0 || trial.Error != "" {
			continue
		}
		if v, ok := sampleValue(trial, f.Name); ok {
			copies[trial.Round-1] = append(copies[trial.Round-1], v)
		}
	}
	byRound = make([]quantity.Number, s.kept)
	for i, values := range copies {
		byRound[i] = quantity.None()
		if len(values) == max(t.Copies, 1) {
			byRound[i] = combineCopies(values, f.Aggregate)
			single = append(single, values...)
		}
	}
	return byRound, single
}

// failures returns for each kept round whether a trial of a test failed in a setting.
func (s samples) failures(t bundle.Test, setting string) []bool {
	all := make([]bool, s.kept)
	for _, trial := range s.trials[cellKey{t.Name, setting}] {
		if trial.Round > 0 && trial.Error != "" {
			all[trial.Round-1] = true
		}
	}
	return all
}

func sampleValue(t bundle.Trial, figure string) (float64, bool) {
	for _, s := range t.Samples {
		if s.Figure == figure {
			return s.Value, true
		}
	}
	return 0, false
}

func combineCopies(values []float64, how test.Aggregate) quantity.Number {
	sum := 0.0
	for _, v := range values {
		sum += v
	}
	if how == test.Sum {
		return quantity.Number(sum)
	}
	return quantity.Number(sum / float64(len(values)))
}
