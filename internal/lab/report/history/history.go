// Package history compares runs over time: tables and plots of figures from several runs.
//
// It is a package of its own because it is a report over many bundles, with types of the same names
// as those of report.
package history

import (
	"bytes"
	"cmp"
	_ "embed" // the page
	"encoding/json"
	"fmt"
	"html/template"
	"io"
	"slices"
	"text/tabwriter"

	"orrery/internal/lab/bundle"
	"orrery/internal/lab/experiment"
	"orrery/internal/lab/report"
	"orrery/internal/lab/report/draw"
	"orrery/internal/lab/report/quantity"
	"orrery/internal/lab/test"
)

//go:embed history.html.tmpl
var pageText string

// A History holds the results of several runs over time: the values of the bare host, and the
// ratios of each setting to bare in the same run. It has no verdicts. Use report.Compare to find
// out whether two runs differ.
type History struct {
	Runs  []bundle.Manifest `json:"runs"`
	Rows  []*Series         `json:"rows"`
	Notes []string          `json:"notes,omitempty"` // reasons for caution
}

// A Series holds the values of one figure in one setting for each run.
type Series struct {
	Test    string         `json:"test"`
	Figure  string         `json:"figure"`
	Setting string         `json:"setting"`
	Unit    string         `json:"unit"` // or "" if the values are ratios to bare
	Better  test.Direction `json:"better"`
	Way     string         `json:"-"`
	Points  []Point        `json:"points"` // only runs that have a value
}

// A Point is the value of one run.
type Point struct {
	Run   int     `json:"run"` // from 0
	Value float64 `json:"value"`
	Low   float64 `json:"low"`
	High  float64 `json:"high"`
}

// New creates the history of reports in the given order. It is pure.
func New(reports []*report.Report) *History {
	h := &History{}
	rows := map[[3]string]*Series{}
	for n, r := range reports {
		h.Runs = append(h.Runs, r.Bundle)
		for t, f := range r.Tests.Rows() {
			for _, c := range f.Cells {
				point, unit, ok := pointOf(f, c)
				if !ok {
					continue
				}
				key := [3]string{t.Name, f.Name, c.Setting}
				if rows[key] == nil {
					rows[key] = &Series{Test: t.Name, Figure: f.Name, Setting: c.Setting, Unit: unit, Better: f.Better, Way: f.Way()}
					h.Rows = append(h.Rows, rows[key])
				}
				point.Run = n
				rows[key].Points = append(rows[key].Points, point)
			}
		}
	}
	h.addCaveats()
	return h
}

// pointOf returns the point of a cell: the value for bare, and the ratio for other settings. ok is
// false if there is no value, or if it is not measurable now.
func pointOf(f *report.Figure, c *report.Cell) (p Point, unit string, ok bool) {
	if c.Again != "" || c.Summary == nil {
		return p, "", false
	}
	if c.Setting == experiment.Bare {
		return Point{Value: c.Summary.Median, Low: c.Summary.Low, High: c.Summary.High}, f.Unit,
			quantity.Number(c.Summary.Median).IsFinite()
	}
	x := c.Ratio
	if x == nil || f.Effect(c) == report.Disturbed {
		return p, "", false
	}
	return Point{Value: x.Value, Low: x.Low, High: x.High}, "", true
}

// addCaveats adds notes about differences between the runs.
func (h *History) addCaveats() {
	differ := func(what string, of func(bundle.Manifest) string) {
		var all []string
		for _, r := range h.Runs {
			all = append(all, of(r))
		}
		slices.Sort(all)
		if all = slices.Compact(all); len(all) > 1 {
			h.Notes = append(h.Notes, fmt.Sprintf("The runs are from %d %s, which may explain differences between them.",
				len(all), what))
		}
	}
	differ("hosts", func(r bundle.Manifest) string { return r.Host })
	differ("versions of the experiment", func(r bundle.Manifest) string { return r.Digest })
	differ("versions of Orrery", func(r bundle.Manifest) string { return r.Orrery })
}

// scale returns the scale of all values of a row.
func (p *Series) scale() quantity.Scale {
	var all []float64
	for _, point := range p.Points {
		all = append(all, point.Value)
	}
	if p.Setting != experiment.Bare {
		s := quantity.ScaleOf("%", scaled(all, 100))
		s.Factor *= 100
		return s
	}
	return quantity.ScaleOfFigure(p.Figure, p.Unit, all)
}

func scaled(all []float64, by float64) []float64 {
	for i := range all {
		all[i] *= by
	}
	return all
}

// valueRange returns the lowest and the highest value.
func (p *Series) valueRange() (least, greatest float64) {
	by := func(a, b Point) int { return cmp.Compare(a.Value, b.Value) }
	return slices.MinFunc(p.Points, by).Value, slices.MaxFunc(p.Points, by).Value
}

// table writes a row for each figure and setting, with a bar chart of characters.
func (h *History) table(w io.Writer) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "\truns\tlowest\thighest\tlast\trun by run")
	for _, p := range h.Rows {
		s := p.scale()
		least, greatest := p.valueRange()
		fmt.Fprintf(t, "%s, %s, %s\t%d\t%s\t%s\t%s\t%s\n", p.Test, p.Figure, p.Setting, len(p.Points), s.Value(least),
			s.Value(greatest),
			s.Value(p.Points[len(p.Points)-1].Value), p.bars(len(h.Runs)))
	}
	return t.Flush()
}

// bars draws a row with block characters, and a space for each run without a value.
func (p *Series) bars(runs int) string {
	blocks := []rune("▁▂▃▄▅▆▇█")
	least, greatest := p.valueRange()
	line := []rune(fmt.Sprintf("%*s", runs, ""))
	for _, point := range p.Points {
		i := len(blocks) / 2
		if greatest > least {
			i = int(float64(len(blocks)-1) * (point.Value - least) / (greatest - least))
		}
		line[point.Run] = blocks[i]
	}
	return string(line)
}

// Text writes the history for a terminal.
func (h *History) Text(w io.Writer) error {
	for _, note := range h.Notes {
		fmt.Fprintln(w, note)
	}
	if err := h.table(w); err != nil {
		return err
	}
	_, err := fmt.Fprintln(w, "\nValues of the bare host, and ratios of each setting to bare in the same run. orrery lab compare shows whether two runs differ.")
	return err
}

// JSON writes the history for programs.
func (h *History) JSON(w io.Writer) error {
	out := json.NewEncoder(w)
	out.SetIndent("", " ")
	return out.Encode(h)
}

// HTML writes the history as one file, like that of a report.
func (h *History) HTML(w io.Writer) error {
	t, err := template.New("history").Parse(pageText)
	if err != nil {
		return err
	}
	var b bytes.Buffer
	if err := t.Execute(&b, h.newPage()); err != nil {
		return err
	}
	_, err = b.WriteTo(w)
	return err
}

// A page holds the data of the template.
type page struct {
	*History
	Style  template.CSS
	Groups []group
}

type chart struct {
	Name string
	Plot template.HTML
}

// A group is a figure, with a chart for each setting.
type group struct {
	Test, Figure, Way string
	Charts            []chart
}

func (h *History) newPage() *page {
	p := &page{History: h, Style: report.Style()}
	order := map[string]int{} // order of the tests
	for _, row := range h.Rows {
		if _, known := order[row.Test]; !known {
			order[row.Test] = len(order)
		}
		n := len(p.Groups) - 1
		if n < 0 || p.Groups[n].Test != row.Test || p.Groups[n].Figure != row.Figure {
			p.Groups = append(p.Groups, group{Test: row.Test, Figure: row.Figure, Way: row.Way})
			n++
		}
		name := row.Setting
		if row.Setting != experiment.Bare {
			name += ", of bare"
		}
		p.Groups[n].Charts = append(p.Groups[n].Charts, chart{name, h.plot(row)})
	}
	// Place a row that only later runs have next to the other rows of its test.
	slices.SortStableFunc(p.Groups, func(a, b group) int { return order[a.Test] - order[b.Test] })
	return p
}

// plot draws a row. The distance between runs is constant, whatever the time between them.
func (h *History) plot(row *Series) template.HTML {
	line := make([]draw.Point, len(row.Points))
	for i, p := range row.Points {
		line[i] = draw.Point{X: float64(p.Run), Y: p.Value, Low: p.Low, High: p.High}
	}
	plot := draw.XY{Right: float64(len(h.Runs) - 1), Bottom: row.Points[0].Low, Top: row.Points[0].High,
		Scale: row.scale()}
	plot.Extend(line)
	if row.Setting != experiment.Bare { // the axis always includes 1
		plot.Bottom, plot.Top = min(plot.Bottom, 0.95), max(plot.Top, 1.05)
	}
	for i, r := range h.Runs {
		plot.Marks = append(plot.Marks, draw.Mark{X: float64(i), Text: r.Began.UTC().Format("01-02")})
	}
	plot.Marks = draw.ThinMarks(plot.Marks)
	return plot.SVG(fmt.Sprintf("%s, %s, %s, run by run", row.Test, row.Figure, row.Setting), line, nil)
}
