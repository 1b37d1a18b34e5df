package report

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"orrery/internal/lab/report/quantity"
	"orrery/internal/lab/suspect"
	"orrery/internal/lab/test"
)

// busy returns a run in which other processes used the host during the network tests of veth, whose
// figures also have several notes, and in which macvlan costs twenty times as much.
func busy() *simulation {
	s := simulate(7)
	s.cost["veth"]["net"] = 0.4321
	s.cost["macvlan"]["micro"] = 20
	s.head.ID = "cost-busy"
	s.more = func(_ int, setting, of string) (all []test.Label) {
		if setting == "veth" && of == "net" {
			all = append(all, test.Label{Name: suspect.Load, Why: "others took 80 % of a processor", Cure: "stop them"},
				test.Label{Name: "mtu", Why: "1500 and 9000", Cure: "make them the same"})
		}
		return all
	}
	return s
}

// TestNotMeasurableNow: an unmeasurable figure has its own sign and no number in tables, plots and
// report.csv.
func TestNotMeasurableNow(t *testing.T) {
	r := analysed(t, busy())
	page := text(t, r.HTML)
	if *look != "" {
		if err := os.WriteFile(filepath.Join(*look, "busy.html"), []byte(page), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	wellFormed(t, "busy.html", page)
	f := r.Tests.figure("net", "tcp forward 1 stream")
	c := f.cell("veth")
	if f.Effect(c) != Disturbed || f.Effect(f.cell("routed")) == Disturbed {
		t.Fatalf("veth is %q and routed %q", f.Effect(c), f.Effect(f.cell("routed")))
	}
	for name, got := range map[string]string{"page": page, "text": text(t, r.Text), "Markdown": text(t, r.Markdown),
		"CSV": text(t, r.CSV)} {
		for _, number := range []string{quantity.Change(c.Ratio.Value), quantity.Interval(c.Ratio.Low, c.Ratio.High),
			exact(c.Ratio.Value)} {
			if strings.Contains(got, number) {
				t.Errorf("the %s has %s, which is not measurable now", name, number)
			}
		}
		if !strings.Contains(got, string(Disturbed)) {
			t.Errorf("the %s does not say %q", name, Disturbed)
		}
	}
	for _, row := range [][]string{*row(f.Numbers(), "veth"), *row(r.tested("net").PaperTable(), "veth")} {
		if strings.Contains(strings.Join(row, " "), quantity.Percent(c.Ratio.Value)) {
			t.Errorf("a table has it as a share of bare: %q", row)
		}
	}
	if plot := string(cellPlot(rulerOf(r.tested("net")), f, c)); !strings.Contains(plot, "iv not-measurable-now") ||
		strings.Contains(plot, "mark") {
		t.Errorf("its plot: %s", plot)
	}
	if at := rulerOf(r.tested("net")).At(0.7); at > 2 {
		t.Errorf("the ruler makes room for it: 0.7 is at %g %%", at)
	}
}

func row(g *grid, name string) *[]string {
	for i := range g.Rows {
		if g.Rows[i][0] == name {
			return &g.Rows[i]
		}
	}
	return &[]string{}
}

func (r *Report) tested(name string) *Test {
	for _, t := range r.Tests {
		if t.Name == name {
			return t
		}
	}
	return nil
}

// TestColours: every effect has a colour in the style sheet, so that none falls back to black.
func TestColours(t *testing.T) {
	all := []Effect{Unjudged}
	for e := range signs {
		all = append(all, e)
	}
	for _, e := range all {
		if !strings.Contains(style, ".iv."+e.Class()) {
			t.Errorf("the interval of what is %q has no style", e)
		}
		if e != Disturbed && !strings.Contains(style, ".mark."+e.Class()) {
			t.Errorf("the mark of what is %q has no style", e)
		}
		if strings.Contains(e.Class(), " ") {
			t.Errorf("%q is several classes", e.Class())
		}
	}
}

// TestFactors: a change that is shown as a factor is not shown in per cent too.
func TestFactors(t *testing.T) {
	r := analysed(t, busy())
	page := text(t, r.HTML)
	if !strings.Contains(page, "× 2") {
		t.Fatal("the page has no factor")
	}
	if found := regexp.MustCompile(`× [0-9.]+\s*%`).FindString(page); found != "" {
		t.Errorf("the page says %s", found)
	}
}

// TestNotes: the numbers of a cell's notes are next to each other.
func TestNotes(t *testing.T) {
	page := text(t, analysed(t, busy()).HTML)
	if !regexp.MustCompile(`class="notes">\[<a [^>]*>\d+</a>, <a [^>]*>\d+</a>`).MatchString(page) {
		t.Error("no cell has two notes beside each other")
	}
	if strings.Contains(page, "<sup>") || strings.Contains(style, "sup{position:absolute") {
		t.Error("notes are printed over one another")
	}
}

// TestFactsOfNodes: the interfaces of nodes and networks, whose names are digests, do not count as
// differences between two runs. Those of the host do.
func TestFactsOfNodes(t *testing.T) {
	a := []byte(`{"interfaces":[{"name":"eth0","mtu":1500},{"name":"orb254694065e","mtu":1500},{"name":"orv49faed7ef8","mtu":1500}]}`)
	b := []byte(`{"interfaces":[{"name":"eth0","mtu":9000},{"name":"orba54694065e","mtu":1500},{"name":"organ","mtu":1500}]}`)
	var names []string
	for _, d := range factDifferences(a, b) {
		names = append(names, d.Name)
	}
	if got := strings.Join(names, ", "); got != "interfaces eth0 mtu, interfaces organ mtu" {
		t.Error(got)
	}
}
