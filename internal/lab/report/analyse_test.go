package report

import (
	"encoding/json"
	"math"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"orrery/internal/lab/bundle"
	"orrery/internal/lab/experiment"
	"orrery/internal/lab/report/quantity"
	"orrery/internal/lab/test"
)

// small returns a bundle with one test of two copies.
func small(trials ...bundle.Trial) *bundle.Contents {
	return &bundle.Contents{Manifest: bundle.Manifest{
		Format: 1, ID: "b", State: bundle.Done,
		Settings: []bundle.Setting{{Name: experiment.Bare}, {Name: experiment.Control}, {Name: "veth"}},
		Tests: []bundle.Test{{Name: "cpu", Kind: "cpu", Copies: 2, Figures: []test.Figure{
			{Name: "score", Unit: "1/s", Better: test.More, Aggregate: test.Sum},
			{Name: "wall", Unit: "s", Better: test.Less, Aggregate: test.Mean}}}},
	}, Trials: trials}
}

func trial(round, copy int, setting string, score float64) bundle.Trial {
	return bundle.Trial{Round: round, Copy: copy, Setting: setting, Test: "cpu",
		Samples: []test.Sample{{Figure: "score", Value: score}, {Figure: "wall", Value: score / 10}}}
}

// TestCopies: copies that ran at once are combined. Round 0 and rounds without all copies do not
// count. If a trial was repeated, the last one counts.
func TestCopies(t *testing.T) {
	failed := trial(2, 1, "bare", 7)
	failed.Error = "killed"
	r := Analyse(small(trial(0, 0, "bare", 1), trial(0, 1, "bare", 1), trial(1, 0, "bare", 10), trial(1, 1, "bare", 30),
		trial(2, 0, "bare", 99), failed, trial(3, 0, "bare", 5), trial(3, 0, "bare", 20), trial(3, 1, "bare", 40)))
	score, wall := r.Tests.figure("cpu", "score").cell("bare"), r.Tests.figure("cpu", "wall").cell("bare")
	if len(score.Values) != 3 || score.Values[0] != 40 || score.Values[1].IsFinite() || score.Values[2] != 60 {
		t.Errorf("sums %v", score.Values)
	}
	if wall.Values[0] != 2 || wall.Values[2] != 3 {
		t.Errorf("means %v", wall.Values)
	}
	if score.Single.N != 4 || score.Single.Least != 10 || score.Single.Most != 40 || score.Failed != 1 {
		t.Errorf("single copies %+v, %d failed", score.Single, score.Failed)
	}
}

func TestMarks(t *testing.T) {
	label := func(name, where string) test.Label {
		return test.Label{Name: name, Why: name + " seen", Cure: "cure " + name, Where: where}
	}
	var trials []bundle.Trial
	for round := range 4 {
		for c := range 2 {
			x := trial(round, c, "bare", 10)
			x.Labels = []test.Label{label("load", "")}
			if round == 2 && c == 0 {
				x.Labels = append(x.Labels, label("sender", "sco"), label("sender", "score"))
			}
			trials = append(trials, x)
		}
	}
	r := Analyse(small(trials...))
	if got := r.Tests.figure("cpu", "score").cell("bare").labelTexts(); strings.Join(got, ", ") != "load, sender 1/6" {
		t.Errorf("labels of score: %v", got)
	}
	if got := r.Tests.figure("cpu", "wall").cell("bare").labelTexts(); strings.Join(got, ", ") != "load" {
		t.Errorf("labels of wall: %v", got)
	}
	if len(r.Suspects) != 2 || r.Suspects[0].Where != nil || r.Suspects[1].Cells != 1 ||
		r.Suspects[1].Cure != "cure sender" {
		t.Errorf("suspects: %+v", r.Suspects)
	}
}

// TestAnything: any bundle has a report, and all of its formats can be written.
func TestAnything(t *testing.T) {
	name := rapid.SampledFrom([]string{"bare", "bare again", "veth", "elsewhere"})
	value := rapid.SampledFrom([]float64{0, -1, 1, 2.5, 1e-300, 1e300, math.SmallestNonzeroFloat64, math.MaxFloat64})
	rapid.Check(t, func(r *rapid.T) {
		var trials []bundle.Trial
		for range rapid.IntRange(0, 40).Draw(r, "trials") {
			x := trial(rapid.IntRange(0, 7).Draw(r, "round"), rapid.IntRange(0, 2).Draw(r, "copy"), name.Draw(r, "setting"),
				value.Draw(r, "value"))
			x.Began = time.Unix(rapid.Int64Range(0, 100).Draw(r, "began"), 0)
			x.Ended = x.Began.Add(time.Second)
			if rapid.IntRange(0, 4).Draw(r, "fails") == 0 {
				x.Error, x.Samples = "failed", nil
			}
			x.Detail = json.RawMessage(rapid.SampledFrom([]string{`{}`, `null`, `3`, `{"curve":1}`,
				`{"curve":[{"sent":3,"achieved":1e9,"valid":true}]}`}).Draw(r, "detail"))
			trials = append(trials, x)
		}
		c := small(trials...)
		c.Manifest.Tests[0].Kind = "capture"
		for i := range rapid.IntRange(0, 30).Draw(r, "seconds") {
			at, _ := time.Unix(int64(i)*rapid.SampledFrom([]int64{1, 100}).Draw(r, "gap"), 0).MarshalJSON()
			c.Seconds = append(c.Seconds, json.RawMessage(`{"at":`+string(at)+`,"took":1,"cpu":{"user":1,"idle":1}}`))
		}
		report := Analyse(c)
		var out strings.Builder
		for _, err := range []error{report.JSON(&out), report.CSV(&out), report.Markdown(&out), report.Text(&out),
			report.HTML(&out), compareTwo(report, report).HTML(&out),
			compareTwo(report, report).JSON(&out)} {
			if err != nil {
				r.Fatal(err)
			}
		}
		if strings.Contains(out.String(), "NaN") {
			r.Fatal("there is a NaN")
		}
	})
}

func TestUnits(t *testing.T) {
	for _, c := range []struct {
		unit   string
		values []float64
		want   string
	}{
		{"bit/s", []float64{9.41e9, 8.5e9}, "9.41 Gb/s"}, {"bit/s", []float64{941e6, 12e9}, "0.94 Gb/s"},
		{"s", []float64{71e-9}, "71.0 ns"},
		{"s", []float64{21.34e-6, 912e-9}, "21.34 µs"}, {"B/s", []float64{412 << 20}, "412 MiB/s"},
		{"1/s", []float64{48213}, "48.2 k/s"},
		{"1", []float64{0.3071}, "0.307"}, {"s/GB", []float64{1234.5}, "1234 s/GB"}, {"bit/s", []float64{0}, "0 b/s"},
		{"s", []float64{125}, "125 s"},
		{"1", []float64{1e300, 1}, quantity.Scale{Factor: 1}.Number(1e300)},
	} {
		if got := quantity.ScaleOf(c.unit, c.values).Value(c.values[0]); got != c.want {
			t.Errorf("%v %s: %q, want %q", c.values, c.unit, got, c.want)
		}
	}
	for ratio, want := range map[float64]string{0.907: "−9.3 %", 1.12: "+12.0 %", 1.00001: "0.0 %", 0.99999: "0.0 %",
		3.5: "+250 %", 33: "× 33.0", math.NaN(): "–"} {
		if got := quantity.Change(ratio); got != want {
			t.Errorf("%v: %q, want %q", ratio, got, want)
		}
	}
}
