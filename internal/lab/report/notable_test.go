package report

import (
	"slices"
	"strings"
	"testing"

	"orrery/internal/lab/bundle"
	"orrery/internal/lab/experiment"
	"orrery/internal/lab/stats"
	"orrery/internal/lab/test"
)

// twins returns a bundle of one test in bare, in a container, and in both again. The values of each
// setting are those of bare multiplied by its factor.
func twins(rounds int, factors map[string]float64, change func(*bundle.Trial)) *bundle.Contents {
	c := small()
	c.Manifest.Tests[0].Copies = 1
	c.Manifest.Settings = []bundle.Setting{{Name: experiment.Bare}, {Name: experiment.Control}, {Name: "veth"},
		{Name: "veth" + experiment.AgainSuffix, Again: "veth"}}
	for round := range rounds + 1 {
		for i, s := range c.Manifest.Settings {
			factor := factors[s.Name]
			if factor == 0 {
				factor = 1
			}
			x := trial(round, 0, s.Name, factor*(100+float64((round*7+i*3)%5)/10))
			x.Instance = max(1, round)
			if change != nil {
				change(&x)
			}
			c.Trials = append(c.Trials, x)
		}
	}
	return c
}

func (r *Report) verdict(setting string) stats.Verdict {
	return r.Tests.figure("cpu", "score").cell(setting).Ratio.Verdict
}

// all returns a report in all of its formats.
func all(t *testing.T, r *Report) string {
	t.Helper()
	return text(t, r.Text) + text(t, r.Markdown) + text(t, r.HTML) + text(t, r.CSV) + text(t, r.JSON)
}

// TestOneInstance: a bundle without recorded instances, like old bundles, counts as one instance.
// Nothing is decided, and the report explains why.
func TestOneInstance(t *testing.T) {
	slow := map[string]float64{"veth": 1.3, "veth" + experiment.AgainSuffix: 1.3}
	if got := Analyse(twins(10, slow, nil)).verdict("veth"); got != stats.Differs {
		t.Errorf("with an instance for each round: %q", got)
	}
	for name, change := range map[string]func(*bundle.Trial){
		"rounds count as one instance":   func(x *bundle.Trial) { x.Instance = 0 },
		"used 1 instance of the nodes":   func(x *bundle.Trial) { x.Instance = 1 },
		"used 4 instances of the nodes.": func(x *bundle.Trial) { x.Instance = 1 + x.Round/3 },
	} {
		r := Analyse(twins(10, slow, change))
		if got := r.verdict("veth"); got != stats.Undecided {
			t.Errorf("%s: %q", name, got)
		}
		if said := text(t, r.Text); !strings.Contains(said, name) || !strings.Contains(said, "An instance is not a setting") {
			t.Errorf("it is not said that all was done %s:\n%s", name, said)
		}
	}
}

// TestTwin: a container is compared with itself, and not listed as a setting. If a control differs
// from what it repeats, the whole table is suspect.
func TestTwin(t *testing.T) {
	r := Analyse(twins(10, nil, nil))
	if len(r.Controls) > 0 || r.verdict("veth") != stats.Same ||
		slices.ContainsFunc(r.columns(), func(s bundle.Setting) bool { return s.Name == "veth"+experiment.AgainSuffix }) {
		t.Errorf("controls %+v, verdict %q, columns %+v", r.Controls, r.verdict("veth"), r.columns())
	}
	for _, slow := range []string{"veth" + experiment.AgainSuffix, experiment.Control} {
		r = Analyse(twins(10, map[string]float64{slow: 1.5}, nil))
		if len(r.Controls) == 0 || !strings.Contains(r.Controls[0], slow) {
			t.Errorf("%s is half as slow again, and controls are %q", slow, r.Controls)
		}
		for _, said := range []string{text(t, r.Text), text(t, r.Markdown), text(t, r.HTML)} {
			if !strings.Contains(said, "the whole table is suspect") {
				t.Errorf("%s: not said:\n%s", slow, said)
			}
		}
		for _, c := range r.Tests.figure("cpu", "score").Cells {
			if !slices.Contains(c.labelTexts(), controlLabel) {
				t.Errorf("%s does not bear the label: %q", c.Setting, c.labelTexts())
			}
		}
	}
	// A difference within the container's own A/A band is not significant.
	r = Analyse(twins(10, map[string]float64{"veth": 1.1, "veth" + experiment.AgainSuffix: 1.25}, nil))
	if got := r.verdict("veth"); got != stats.Undecided {
		t.Errorf("within the band of the container: %q", got)
	}
}

// TestDisturbed: if there is steal or load in too many rounds of a setting or of bare, the verdict
// is "not measurable now", and there is no number.
func TestDisturbed(t *testing.T) {
	slow := map[string]float64{"veth": 1.97, "veth" + experiment.AgainSuffix: 1.97}
	for _, label := range []string{"load", "steal"} {
		for _, setting := range []string{"veth", experiment.Bare} {
			for rounds, want := range map[int]stats.Verdict{2: stats.Differs, 3: stats.Unmeasurable} {
				r := Analyse(twins(10, slow, func(x *bundle.Trial) {
					if x.Setting == setting && x.Round > 0 && x.Round <= rounds {
						x.Labels = []test.Label{{Name: label, Why: "others", Cure: "stop them"}}
					}
				}))
				if got := r.verdict("veth"); got != want {
					t.Errorf("%s of %s in %d of 10 rounds: %q, want %q", label, setting, rounds, got, want)
				}
				if want != stats.Unmeasurable {
					continue
				}
				said := all(t, r)
				if strings.Count(said, "not measurable now") < 8 ||
					!strings.Contains(said, "figures are not measurable now: other processes used this host") {
					t.Errorf("it is not said:\n%s", said)
				}
				if answer := text(t, r.Text); strings.Contains(answer, "97.0 %") {
					t.Errorf("a number is told:\n%s", answer)
				}
			}
		}
	}
	c := twins(10, slow, func(x *bundle.Trial) { x.Labels = []test.Label{{Name: "load"}} })
	c.Manifest.Disturbed = 1
	if got := Analyse(c).verdict("veth"); got != stats.Differs {
		t.Errorf("with a share of 1: %q", got)
	}
}

// TestModesAreLabelled: bimodal values have a label.
func TestModesAreLabelled(t *testing.T) {
	r := Analyse(twins(20, nil, func(x *bundle.Trial) {
		if x.Setting == "veth" && x.Round*x.Round%7 > 2 {
			x.Samples[0].Value *= 1.3
		}
	}))
	if got := r.Tests.figure("cpu", "score").cell("veth").labelTexts(); !slices.Contains(got, modesLabel) {
		t.Errorf("labels %q", got)
	}
}
