package main

import (
	"fmt"
	"math"
	"math/rand/v2"

	"orrery/internal/lab/bundle"
	"orrery/internal/lab/experiment"
	"orrery/internal/lab/report"
	"orrery/internal/lab/stats"
	"orrery/internal/lab/test"
)

// The simulated table: twenty figures in bare, in bare again, in two settings, and in the first of
// them again.
var (
	tests    = []struct{ kind, figures string }{{"disk", "abc"}, {"net", "abc"}, {"cpu", "abcd"}, {"micro", "abcdefghij"}}
	settings = []bundle.Setting{
		{Name: experiment.Bare}, {Name: experiment.Control, Again: experiment.Bare},
		{Name: "veth"}, {Name: "veth again", Again: "veth"}, {Name: "routed"},
	}
)

// The figure that may be slower. No process that affects only some figures affects it.
const slowTest, slowFigure, slowSetting = "micro", "j", "routed"

// A world is a run simulated by a model.
type world struct {
	model
	random *rand.Rand
	seed   uint64
	per    int     // rounds per instance
	slower float64 // factor for one figure in one setting; 1 for no difference
	luck   float64 // of the run
	id     string
	live   map[[2]string][]func(int) float64 // active processes by figure and setting
	trials []bundle.Trial
}

func newWorld(m model, seed uint64, per int, slower float64) *world {
	return &world{
		model: m, random: rand.New(rand.NewPCG(seed, 77)), seed: seed, per: per, slower: slower,
		id: fmt.Sprint("run-", seed), live: map[[2]string][]func(int) float64{},
	}
}

// begin draws the luck of the run and starts all processes.
func (w *world) begin() {
	number := 0
	for _, t := range tests {
		for _, f := range t.figures {
			for _, s := range settings {
				noise := w.noise
				if s.Name == experiment.Bare && w.base != nil || s.Again == experiment.Bare && w.base != nil {
					noise = w.base
				}
				parts := []func(int) float64{noise(w.random)}
				if w.more != nil && w.strike(t.kind, number) {
					parts = append(parts, w.more(w.random))
				}
				luck := w.luck * w.random.NormFloat64()
				w.live[[2]string{t.kind + string(f), s.Name}] = append(parts, func(int) float64 { return luck })
			}
			number++
		}
	}
}

// round simulates one round. The rehearsal is omitted, because it does not count in the product
// either.
func (w *world) round(round int) {
	if round == 1 {
		w.begin()
	}
	instance := 1 + (round-1)/w.per
	for _, t := range tests {
		for slot, i := range stats.Order(len(settings), round, w.seed) {
			s := settings[i]
			trial := bundle.Trial{Round: round, Instance: instance, Slot: slot, Setting: s.Name, Test: t.kind}
			when := (float64(round-1) + float64(slot)/float64(len(settings))) / 10
			for _, f := range t.figures {
				x := math.Log1p(w.drift * when)
				for _, part := range w.live[[2]string{t.kind + string(f), s.Name}] {
					x += part(instance)
				}
				if t.kind == slowTest && string(f) == slowFigure && s.Name == slowSetting {
					x += math.Log(w.slower)
				}
				trial.Samples = append(trial.Samples, test.Sample{Figure: string(f), Value: 1000 * math.Exp(x)})
			}
			w.trials = append(w.trials, trial)
		}
	}
}

// contents returns the bundle so far.
func (w *world) contents(width float64) *bundle.Contents {
	h := bundle.Manifest{Format: bundle.Format, ID: w.id, Host: "simulated", State: bundle.Done, Width: width,
		Settings: settings}
	for _, t := range tests {
		x := bundle.Test{Name: t.kind, Kind: t.kind, Copies: 1}
		for _, f := range t.figures {
			x.Figures = append(x.Figures, test.Figure{Name: string(f), Unit: "s", Better: test.Less, Aggregate: test.Mean})
		}
		h.Tests = append(h.Tests, x)
	}
	return &bundle.Contents{Manifest: h, Trials: w.trials}
}

// measure runs rounds like `orrery lab run`: the required ones, and more up to a limit while the
// report asks for them.
func (w *world) measure(rounds, most int) *report.Report {
	var r *report.Report
	for round := 1; round <= most; round++ {
		// ask only every second round, to save half of the time
		if w.round(round); round < rounds || (most-round)%2 == 1 {
			continue
		}
		if r = report.Analyse(w.contents(0.06)); !r.NeedsMoreRounds() {
			break
		}
	}
	return r
}
