package search

import (
	"context"
	"math"
	"math/rand/v2"
	"testing"

	"gonum.org/v1/gonum/stat"
)

// A model is a host that receives 1 Gbit/s without loss.
type model struct {
	name  string
	loses loss
	// Minimum goodput of a full blast, relative to the lossless rate, from which MLR needs at most
	// 60 % of the trials with no larger spread.
	from float64
}

const knee = 1e9

var models = []model{
	{"sharp knee", sharp(knee), 1.3},
	{"soft knee, 0.5 %", soft(knee, 0.005), 1.5},
	{"soft knee, 2 %", soft(knee, 0.02), 2},
	{"noisy capacity, 1 %", noisy(knee, 0.01), 1.5},
	{"noisy capacity, 3 %", noisy(knee, 0.03), 2},
	{"a loss in one of 50 trials at any rate", sporadic(knee, 0.02), 1.3},
	{"a loss in one of 20 trials at any rate", sporadic(knee, 0.05), 1.3},
}

// tenSearches returns how many trials ten searches took, and the spread of their results as
// standard deviation divided by mean.
func tenSearches(t *testing.T, seed uint64, m model, over float64, how func(Options, Trial) (Result, error)) (trials,
	spread, mean float64) {
	var found []float64
	for i := range uint64(10) {
		g := rand.New(rand.NewPCG(seed, i))
		r := &receiver{random: g, sender: 3 * knee, blast: over * knee * math.Exp(0.01*g.NormFloat64()), loses: m.loses}
		result, err := how(Options{}, r.try)
		if err != nil {
			t.Fatalf("%s: %v", m.name, err)
		}
		trials += float64(result.Trials)
		found = append(found, result.Rate)
	}
	mean, deviation := stat.MeanStdDev(found, nil)
	return trials, deviation / mean, mean
}

// TestTrials: from the same start, the goodput of a full blast, MLR needs at most 60 % of the
// trials of StepDown, with no larger spread over ten searches. This holds if the goodput is well
// above the lossless rate: 1.3 times for a sharp knee or sporadic losses, 1.5 times for one that is
// soft or noisy by 1 %, twice for more. With less, the 7 clean and 3 lossy trials that decide the
// last two loads cost more than stepping down, for which 3 are enough.
func TestTrials(t *testing.T) {
	const tens = 40
	for _, over := range []float64{1.1, 1.3, 1.5, 2} {
		for _, m := range models {
			var trials, spread, rate [2]float64
			for seed := range uint64(tens) {
				for i, how := range []func(Options, Trial) (Result, error){
					func(o Options, trial Trial) (Result, error) { return MLR(context.Background(), o, trial) },
					func(o Options, trial Trial) (Result, error) { return StepDown(context.Background(), 0, o, trial) },
				} {
					n, s, r := tenSearches(t, seed, m, over, how)
					trials[i], spread[i], rate[i] = trials[i]+n/tens/10, spread[i]+s/tens, rate[i]+r/tens/knee
				}
			}
			share := trials[0] / trials[1]
			t.Logf("blast %.1f × knee, %-39s MLR %4.1f trials, spread %.2f %%, at %.3f; by 1 %% down %4.1f, %.2f %%, at %.3f: %3.0f %% of the trials",
				over, m.name+":", trials[0], 100*spread[0], rate[0], trials[1], 100*spread[1], rate[1], 100*share)
			if over >= m.from && (share > 0.6 || spread[0] > spread[1]) {
				t.Errorf("blast %.1f × knee, %s: %.0f %% of the trials, spread %.3f against %.3f", over, m.name, 100*share,
					spread[0], spread[1])
			}
		}
	}
}

// TestSharp: the result is within 1 % below a sharp knee, at very low and very high rates, for any
// start.
func TestSharp(t *testing.T) {
	for _, knee := range []float64{10, 1e3, 1.7e6, 9.41e9, 4e11, 1e14} {
		for _, start := range []float64{0, knee / 300, knee * 0.97, knee, knee * 1.02, knee * 500} {
			r := &receiver{sender: 600 * knee, blast: 2 * knee, loses: sharp(knee)}
			found, err := MLR(context.Background(), Options{Start: start, Least: knee / 1e4}, r.try)
			if err != nil || found.Rate > knee || found.Rate < knee*0.99 || found.Capped || found.Trials > 45 {
				t.Errorf("knee %g, start %g: %g after %d trials, capped %t, %v", knee, start, found.Rate, found.Trials,
					found.Capped, err)
			}
			found, err = StepDown(context.Background(), start, Options{}, r.try)
			if start >= knee && (err != nil || found.Rate > knee || found.Rate < knee*0.98) {
				t.Errorf("knee %g, stepping down from %g: %g, %v", knee, start, found.Rate, err)
			}
		}
	}
}

// TestCapped: loads that cannot be tried limit the search, and Capped says so.
func TestCapped(t *testing.T) {
	clean := func(*rand.Rand, float64) float64 { return 0 }
	for name, c := range map[string]struct {
		receiver receiver
		options  Options
		want     float64
	}{
		"the blast is received whole": {receiver{sender: 5e9, blast: 5e9, loses: clean}, Options{}, 5e9},
		"a bound":                     {receiver{sender: 5e9, blast: 5e9, loses: clean}, Options{Most: 2e9}, 2e9},
		"a bound, and a start above": {receiver{sender: 5e9, blast: 5e9, loses: clean}, Options{Most: 2e9, Start: 3e9},
			2e9},
		"the sender, from below": {receiver{sender: 5e9, loses: clean}, Options{Start: 4e9}, 5e9},
		"least and most are one": {receiver{sender: 5e9, blast: 5e9, loses: clean}, Options{Least: 1e9, Most: 1e9},
			1e9},
		"a blast that drowns a receiver": {receiver{sender: 5e9, blast: 5e7, loses: clean}, Options{}, 5e9},
	} {
		found, err := MLR(context.Background(), c.options, c.receiver.try)
		if err != nil || !found.Capped || math.Abs(found.Rate/c.want-1) > 0.02 || c.options.Most > 0 &&
			found.Rate > c.options.Most {
			t.Errorf("%s: %g, capped %t, %v; wanted %g", name, found.Rate, found.Capped, err, c.want)
		}
	}
}
