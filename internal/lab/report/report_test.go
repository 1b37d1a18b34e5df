package report

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"flag"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"orrery/internal/lab/bundle"
	"orrery/internal/lab/experiment"
	"orrery/internal/lab/stats"
)

var update = flag.Bool("update", false, "write the expected files anew")

// look is a directory for the pages, to view them in a browser.
var look = flag.String("look", "", "write the pages into this directory")

func analysed(t *testing.T, s *simulation) *Report {
	t.Helper()
	c, err := bundle.Read(s.write(t))
	if err != nil {
		t.Fatal(err)
	}
	return Analyse(c)
}

// later returns a run after the network of veth got slower and the kernel was updated.
func later() *simulation {
	s := simulate(9)
	s.head.ID = "cost-20260401-0910"
	s.cost["veth"]["net"] = 0.7
	s.cost[experiment.Bare] = map[string]float64{"micro": 1.2}
	s.facts = strings.Replace(s.facts, "6.1.0-32", "6.12.0-5", 1)
	return s
}

func text(t *testing.T, write func(io.Writer) error) string {
	t.Helper()
	var b bytes.Buffer
	if err := write(&b); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// TestGolden: the text of a report and of a comparison, to the last character.
func TestGolden(t *testing.T) {
	r := analysed(t, simulate(7))
	c := compareTwo(r, analysed(t, later()))
	for name, write := range map[string]func(io.Writer) error{
		"report.md": r.Markdown, "report.csv": r.CSV, "report.txt": r.Text, "compare.md": c.Markdown, "compare.txt": c.Text,
	} {
		got := text(t, write)
		path := filepath.Join("testdata", name)
		if *update {
			if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if got != string(want) {
			t.Errorf("%s differs: look at it and, if it is right, run go test -update\n%s", name,
				firstDifference(got, string(want)))
		}
	}
}

func firstDifference(got, want string) string {
	g, w := strings.Split(got, "\n"), strings.Split(want, "\n")
	for i := range min(len(g), len(w)) {
		if g[i] != w[i] {
			return "got  " + g[i] + "\nwant " + w[i]
		}
	}
	return "one is longer"
}

// TestPages: both pages are well-formed, refer to nothing outside, and contain no scripts.
func TestPages(t *testing.T) {
	r := analysed(t, simulate(7))
	for name, write := range map[string]func(io.Writer) error{
		"report.html": r.HTML, "compare.html": compareTwo(r, analysed(t, later())).HTML} {
		page := text(t, write)
		if *look != "" {
			if err := os.WriteFile(filepath.Join(*look, name), []byte(page), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		wellFormed(t, name, page)
		if strings.Contains(page, "ZgotmplZ") {
			t.Errorf("%s: the template refused a value", name)
		}
	}
}

func wellFormed(t *testing.T, name, page string) {
	t.Helper()
	d := xml.NewDecoder(strings.NewReader(page))
	ids, wanted := map[string]bool{}, map[string]bool{}
	for {
		token, err := d.Token()
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatalf("%s is not well-formed: %v", name, err)
		}
		e, ok := token.(xml.StartElement)
		if !ok {
			continue
		}
		if strings.EqualFold(e.Name.Local, "script") || strings.EqualFold(e.Name.Local, "link") {
			t.Errorf("%s has a %s", name, e.Name.Local)
		}
		for _, a := range e.Attr {
			switch {
			case a.Name.Local == "id" && ids[a.Value]:
				t.Errorf("%s: two elements have the id %s", name, a.Value)
			case a.Name.Local == "id":
				ids[a.Value] = true
			case a.Name.Local == "href" && strings.HasPrefix(a.Value, "#"):
				wanted[a.Value[1:]] = true
			case a.Name.Local == "href", a.Name.Local == "src", strings.HasPrefix(a.Name.Local, "on"):
				t.Errorf("%s: %s=%q", name, a.Name.Local, a.Value)
			}
			if strings.Contains(a.Value, "NaN") || strings.Contains(a.Value, "Inf") {
				t.Errorf("%s: %s=%q", name, a.Name.Local, a.Value)
			}
		}
	}
	for id := range wanted {
		if !ids[id] {
			t.Errorf("%s links to #%s, which is not there", name, id)
		}
	}
	if found := regexp.MustCompile(`https?://|@import|url\(`).FindString(page); found != "" {
		t.Errorf("%s refers to the outside: %s", name, found)
	}
}

// TestHostile: output of tools and names from users cannot inject markup into the page.
func TestHostile(t *testing.T) {
	const evil = `<script>alert("x")</script>|_*` + "`"
	s := simulate(3)
	s.rounds = 3
	s.head.Title, s.head.Settings[2].About, s.head.Tests[1].Figures[0].Name = evil, evil, evil
	typical[evil] = typical["tcp forward 1 stream"]
	t.Cleanup(func() { delete(typical, evil) })
	s.facts = `{"kernel":{"a":"<script>","b":"<b>"}}`
	r := analysed(t, s)
	r.Tests[0].Failures = []Failure{{Setting: evil, Reason: evil, Output: evil}}
	page := text(t, r.HTML)
	wellFormed(t, "report.html", page)
	if strings.Contains(page, "<script>") {
		t.Error("the page has a script")
	}
	for _, l := range strings.Split(text(t, r.Markdown), "\n") {
		if strings.Contains(l, "<script>") && !strings.HasPrefix(l, "    ") {
			t.Errorf("the Markdown has %s", l)
		}
	}
}

// TestVerdicts: simulated differences are found, and there are no others.
func TestVerdicts(t *testing.T) {
	r := analysed(t, simulate(7))
	for _, c := range []struct {
		test, figure, setting string
		want                  Effect
	}{
		{"capture", "lossless rate", "veth", Worse}, {"capture", "host cpu", "veth", Worse},
		{"capture", "lossless rate", "exclusive", Same},
		{"cpu x8", "score", "veth", Same}, {"micro", "clock resolution", "veth", Unjudged},
		{"disk", "sequential write", "macvlan", NoEffect},
		{"net", "round trip", experiment.Control, NoEffect},
	} {
		f := r.Tests.figure(c.test, c.figure)
		if got := f.Effect(f.cell(c.setting)); got != c.want {
			t.Errorf("%s, %s, %s: %q, want %q", c.test, c.figure, c.setting, got, c.want)
		}
	}
	if c := r.Tests.figure("disk", "sequential write").cell("macvlan"); c.Failed != 13 ||
		!strings.Contains(c.Missing, "no room") {
		t.Errorf("the failed cell: %+v", c)
	}
	if c := r.Tests.figure("net", "round trip").cell("kvm"); c.Missing != "this host has no /dev/kvm" {
		t.Errorf("the missing setting: %+v", c)
	}
	if c := r.Tests.figure("net", "round trip").cell("routed"); c.Failed != 1 || c.Summary.N != 11 ||
		c.Values[3].IsFinite() {
		t.Errorf("one trial failed: %+v", c)
	}
}

// TestJSON: report.json contains the whole report, with null for missing numbers.
func TestJSON(t *testing.T) {
	r := analysed(t, simulate(7))
	var again Report
	if err := json.Unmarshal([]byte(text(t, r.JSON)), &again); err != nil {
		t.Fatal(err)
	}
	again.Traces, again.Round = r.Traces, r.Round
	if text(t, again.Markdown) != text(t, r.Markdown) || text(t, again.HTML) != text(t, r.HTML) {
		t.Error("the report that was read from report.json is another one")
	}
}

func TestCompare(t *testing.T) {
	c := compareTwo(analysed(t, simulate(7)), analysed(t, later()))
	for _, r := range c.Rows {
		want := stats.Same
		if r.Test == "net" && r.Setting == "veth" {
			want = stats.RunsDiffer // one run on each side
		}
		if r.Test == "net" && (r.Value.Verdict == stats.RunsDiffer) != (want == stats.RunsDiffer) {
			t.Errorf("%s, %s, %s: %+v", r.Test, r.Figure, r.Setting, r.Value)
		}
	}
	if len(c.Facts) != 1 || c.Facts[0] != (FactDifference{"kernel release", "6.1.0-32-amd64", "6.12.0-5-amd64"}) {
		t.Errorf("facts: %+v", c.Facts)
	}
}

// compareTwo compares two single runs.
func compareTwo(before, after *Report) *Comparison {
	return Compare([]*Report{before}, []*Report{after}, nil)
}
