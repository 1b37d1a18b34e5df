package report

import (
	"strings"
	"testing"

	"orrery/internal/lab/bundle"
	"orrery/internal/lab/experiment"
	"orrery/internal/lab/stats"
	"orrery/internal/lab/test"
)

// broken returns a bundle in which trials of veth fail in some rounds, or have a given value.
func broken(rounds int, in func(round int) bool, value *float64) *bundle.Contents {
	return twins(rounds, nil, func(x *bundle.Trial) {
		if x.Setting != "veth" || x.Round == 0 || !in(x.Round) {
			return
		}
		for i := range x.Samples {
			if value != nil && x.Samples[i].Figure == "score" {
				x.Samples[i].Value = *value
			}
		}
		if value == nil {
			x.Samples, x.Error = nil, "exit status 1"
		}
	})
}

// TestFailuresAreResults: a test that fails, or has a rate of 0 or less, in every second round of
// one setting has a cost. One failure in ten rounds may be chance, and is only reported.
func TestFailuresAreResults(t *testing.T) {
	zero, negative := 0.0, -5.0
	for name, value := range map[string]*float64{"fails": nil, "gives 0": &zero, "gives -5": &negative} {
		r := Analyse(broken(10, func(round int) bool { return round%2 == 0 }, value))
		if got := r.verdict("veth"); got != stats.Fails {
			t.Errorf("%s in every second round: %q, %+v", name, got, r.Tests.figure("cpu", "score").cell("veth").Ratio)
		}
		if said := text(t, r.Text); !strings.Contains(said,
			"veth fails more often than bare: score in cpu in 5 of 10 instances (bare: 0 of 10)") ||
			strings.Contains(said, "costs nothing") {
			t.Errorf("%s in every second round:\n%s", name, said)
		}
		r = Analyse(broken(10, func(round int) bool { return round%3 == 0 }, value))
		if got := r.verdict("veth"); got == stats.Same || got == stats.Fails {
			t.Errorf("%s in three of ten rounds: %q", name, got)
		}
	}
	r := Analyse(broken(10, func(round int) bool { return round == 4 }, nil))
	said := text(t, r.Text)
	if r.verdict("veth") != stats.Same || strings.Contains(said, "costs nothing.") ||
		!strings.Contains(said, "Trials of 2 figures failed.") {
		t.Errorf("fails once:\n%s", said)
	}
	if said := text(t, Analyse(twins(10, nil, nil)).Text); !strings.Contains(said, "veth costs nothing.") {
		t.Errorf("what never fails:\n%s", said)
	}
}

// TestNoValues: a setting without values for most figures is not reported as free of cost.
func TestNoValues(t *testing.T) {
	c := twins(10, nil, nil)
	dead := c.Manifest.Tests[0]
	dead.Name = "dead"
	c.Manifest.Tests = append(c.Manifest.Tests, dead)
	for round := range 11 {
		for _, s := range c.Manifest.Settings {
			c.Trials = append(c.Trials, bundle.Trial{Round: round, Instance: max(1, round), Setting: s.Name, Test: "dead",
				Error: "no such program"})
		}
	}
	r := Analyse(c)
	said := text(t, r.Text)
	if strings.Contains(said, "costs nothing.") || !strings.Contains(said, "without a value in 2") {
		t.Errorf("said:\n%s", said)
	}
	if barren := r.Tests.WithoutResults(); len(barren) != 1 || barren[0].Setting != "dead" ||
		barren[0].Reason != "no such program" {
		t.Errorf("%+v", barren)
	}
}

// TestSlight: a significant difference that may be smaller than 5 % has its own effect.
func TestSlight(t *testing.T) {
	factors := map[string]float64{"veth": 1.052, "veth" + experiment.AgainSuffix: 1.052}
	r := Analyse(twins(10, factors, func(x *bundle.Trial) {
		if strings.HasPrefix(x.Setting, "veth") {
			for i := range x.Samples {
				x.Samples[i].Value *= 1 + 0.004*float64(x.Round%5-2)
			}
		}
	}))
	if got := r.verdict("veth"); got != stats.Slight {
		t.Errorf("%q: %+v", got, r.Tests.figure("cpu", "score").cell("veth").Ratio)
	}
	said := text(t, r.Text)
	for _, want := range []string{"veth is a little worse in: wall in cpu +", "It is a little better in: score in cpu +",
		"% ▽", "% △"} {
		if !strings.Contains(said, want) {
			t.Errorf("no %q in:\n%s", want, said)
		}
	}
	if strings.Contains(said, "costs nothing") {
		t.Errorf("said:\n%s", said)
	}
}

// TestLoadOfAll: if the host is always used by others, a figure is judged if its A/A band is
// narrow, and otherwise not measurable.
func TestLoadOfAll(t *testing.T) {
	slow := map[string]float64{"veth": 1.3, "veth" + experiment.AgainSuffix: 1.3}
	for wide, want := range map[bool]stats.Verdict{false: stats.Differs, true: stats.Unmeasurable} {
		r := Analyse(twins(10, slow, func(x *bundle.Trial) {
			x.Labels = []test.Label{{Name: "load", Why: "others", Cure: "stop them"}}
			if wide && x.Setting == experiment.Control {
				x.Samples[0].Value *= 1 + 0.3*float64(x.Round%2)
			}
		}))
		if got := r.verdict("veth"); got != want {
			t.Errorf("wide band %v: %q", wide, got)
		}
	}
}

// TestRangesAreNamed: fewer than five instances have a range and no 95 % interval. A single value
// has neither.
func TestRangesAreNamed(t *testing.T) {
	for rounds, want := range map[int]bool{1: true, 4: true, 5: false} {
		r := Analyse(twins(rounds, nil, nil))
		cell := r.Tests.figure("cpu", "score").cell("veth")
		if cell.Ratio.Range != want || cell.Summary.Range != want || r.Tests.figure("cpu", "score").Control.Range != want {
			t.Errorf("%d rounds: %+v, %+v", rounds, cell.Ratio, cell.Summary)
		}
		said := text(t, r.Markdown)
		if named := strings.Contains(said, "range "); named != (rounds == 4) {
			t.Errorf("%d rounds:\n%s", rounds, said)
		}
		if rounds < 5 && !r.NeedsMoreRounds() {
			t.Errorf("%d rounds: nothing is decided, and no more rounds are wanted", rounds)
		}
	}
}

// TestNeeded: a report says how many rounds it takes to find 10 %, unless there were enough.
func TestNeeded(t *testing.T) {
	noisy := func(spread float64) *Report {
		return Analyse(twins(30, nil, func(x *bundle.Trial) {
			if x.Setting == "veth" {
				for i := range x.Samples {
					x.Samples[i].Value *= 1 + spread*float64((x.Round*7)%15-7)
				}
			}
		}))
	}
	if rounds, figures := noisy(0).RoundsNeeded(0.10); len(figures) > 0 {
		t.Errorf("%d rounds for %v", rounds, figures)
	}
	some, figures := noisy(0.01).RoundsNeeded(0.10)
	more, _ := noisy(0.02).RoundsNeeded(0.10)
	if len(figures) != 2 || some <= 30 || more < 3*some || more > 5*some {
		t.Errorf("%d rounds for %v, and %d for twice the noise", some, figures, more)
	}
	if said := text(t, noisy(0.01).Text); !strings.Contains(said, "may miss a difference of 10 % in 2 figures") ||
		!strings.Contains(said, "orrery lab run --until 10%") {
		t.Errorf("said:\n%s", said)
	}
}

// TestConfirmed: a difference of less than 10 % needs 20 instances, and a larger one needs no more
// rounds.
func TestConfirmed(t *testing.T) {
	for _, c := range []struct {
		rounds int
		slower float64
		want   bool
	}{{10, 1.08, true}, {20, 1.08, false}, {10, 1.3, false}, {10, 1, false}} {
		b := twins(c.rounds, map[string]float64{"veth": c.slower, "veth" + experiment.AgainSuffix: c.slower}, nil)
		b.Manifest.Width = 0.06
		if got := Analyse(b).NeedsMoreRounds(); got != c.want {
			t.Errorf("%g times, %d rounds: more rounds wanted: %v", c.slower, c.rounds, got)
		}
	}
}
