package history

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"errors"
	"flag"
	"io"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"orrery/internal/lab/bundle"
	"orrery/internal/lab/report"
	"orrery/internal/lab/suspect"
	"orrery/internal/lab/test"
)

// look is a directory for the page, to view it in a browser.
var look = flag.String("look", "", "write the page into this directory")

// runs returns runs in which veth is slower each time. In the fourth, other processes used the
// host. The last run has an additional test.
func runs() (all []*report.Report) {
	for n := range 6 {
		head := bundle.Manifest{
			Format: bundle.Format, ID: "cost-" + string(rune('0'+n)), Experiment: "cost", Host: "sv1", Orrery: "v1",
			State:    bundle.Done,
			Began:    time.Date(2026, 3, 14+n, 21, 0, 0, 0, time.UTC),
			Settings: []bundle.Setting{{Name: "bare"}, {Name: "bare again", Again: "bare"}, {Name: "veth"}},
			Tests: []bundle.Test{{Name: "net", Kind: "net", Copies: 1,
				Figures: []test.Figure{{Name: "tcp", Unit: "bit/s", Better: test.More, Aggregate: test.Sum}}}},
		}
		if n == 5 {
			head.Tests = append(head.Tests, bundle.Test{Name: "cpu", Kind: "cpu", Copies: 1,
				Figures: []test.Figure{{Name: "int64", Unit: "1/s", Better: test.More, Aggregate: test.Sum}}})
		}
		c := &bundle.Contents{Manifest: head}
		for round := range 7 {
			for _, s := range head.Settings {
				for _, of := range head.Tests {
					value := 1e10 * (1 + 0.001*float64(round%3))
					trial := bundle.Trial{Round: round, Instance: max(1, round), Setting: s.Name, Test: of.Name}
					if s.Name == "veth" {
						value *= 1 - 0.1*float64(n)
						if n == 3 {
							trial.Labels = []test.Label{{Name: suspect.Load, Why: "others", Cure: "stop them"}}
						}
					}
					trial.Samples = []test.Sample{{Figure: of.Figures[0].Name, Value: value}}
					c.Trials = append(c.Trials, trial)
				}
			}
		}
		all = append(all, report.Analyse(c))
	}
	return all
}

// TestHistory: a figure is drawn run by run, as values of bare and as ratios of a setting. A value
// that was not measurable has no spot.
func TestHistory(t *testing.T) {
	h := New(runs())
	rows := map[string]*Series{}
	for _, p := range h.Rows {
		rows[p.Figure+", "+p.Setting] = p
	}
	bare, veth := rows["tcp, bare"], rows["tcp, veth"]
	if len(bare.Points) != 6 || bare.Unit != "bit/s" || bare.Points[0].Value < 1e10 {
		t.Errorf("bare: %+v", bare)
	}
	if len(veth.Points) != 5 || veth.Points[3].Run != 4 || math.Abs(veth.Points[4].Value-0.5) > 1e-9 ||
		math.Abs(veth.Points[0].Value-1) > 1e-9 {
		t.Errorf("veth: %+v", veth.Points)
	}
	if rows["tcp, bare again"] != nil {
		t.Error("a control has a history")
	}
	if got := veth.bars(6); got != "█▆▅ ▂▁" {
		t.Errorf("veth is drawn as %q", got)
	}
	if got := rows["int64, bare"].bars(6); got != "     ▅" {
		t.Errorf("a single run is drawn as %q", got)
	}
	var text, page, object bytes.Buffer
	if err := errors.Join(h.Text(&text), h.HTML(&page), h.JSON(&object)); err != nil {
		t.Fatal(err)
	}
	if got := text.String(); !strings.Contains(got, "net, tcp, veth") || !strings.Contains(got, "█▆▅ ▂▁") ||
		!strings.Contains(got, "50.0 %") {
		t.Errorf("%s", got)
	}
	if err := json.Unmarshal(object.Bytes(), &History{}); err != nil {
		t.Error(err)
	}
	if *look != "" {
		if err := os.WriteFile(filepath.Join(*look, "history.html"), page.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if got := page.String(); strings.Count(got, `class="spot"`) != 13 || strings.Contains(got, "NaN") ||
		strings.Contains(got, "Zgotmpl") {
		t.Errorf("the page has %d spots", strings.Count(got, `class="spot"`))
	}
	for d := xml.NewDecoder(&page); ; {
		_, err := d.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatalf("the page is not well-formed: %v", err)
		}
	}
}

// TestNotes: differences between the runs are noted.
func TestNotes(t *testing.T) {
	all := runs()[:3]
	if h := New(all); len(h.Notes) != 0 {
		t.Errorf("notes: %v", h.Notes)
	}
	all[1].Bundle.Host, all[1].Bundle.Orrery = "sv2", "v9"
	if got := strings.Join(New(all).Notes, " "); !strings.Contains(got, "2 hosts") ||
		!strings.Contains(got, "2 versions of Orrery") {
		t.Errorf("%q", got)
	}
}
