package report

import (
	"bytes"
	_ "embed"
	"html/template"
	"io"
	"strconv"
	"strings"

	"orrery/internal/lab/bundle"
	"orrery/internal/lab/experiment"
	"orrery/internal/lab/report/quantity"
)

//go:embed page.html.tmpl
var pageTemplate string

//go:embed page.css
var style string

// HTML writes report.html: one file, without scripts, that needs no network.
func (r *Report) HTML(w io.Writer) error { return render(w, "page", pageTemplate, r.page()) }

// render executes a template whole before anything is written.
func render(w io.Writer, name, text string, data any) error {
	t, err := template.New(name).Funcs(template.FuncMap{"unbroken": unbroken}).Parse(text)
	if err != nil {
		return err
	}
	var b bytes.Buffer
	if err := t.Execute(&b, data); err != nil {
		return err
	}
	_, err = b.WriteTo(w)
	return err
}

// A page is what the template shows.
type page struct {
	Title, Host, Circumstances, Source string
	Style                              template.CSS
	Warnings                           []string
	Sections                           []section
	Answers                            []Answer
	Absent                             []bundle.Setting
	Kept                               string
	Columns                            []bundle.Setting
	Span                               int
	Groups                             []answerGroup
	Tests                              []testPage
	Suspects                           []suspectLine
	Traces, Round                      []chart
	Facts                              []factGroup
	Reproduce                          []string
	Method                             string
	ID, Orrery, Experiment, Digest     string
	Seed                               uint64
}

type section struct{ ID, Name string }

type chart struct {
	Name string
	Plot template.HTML
}

type answerGroup struct {
	section
	Lines []answerLine
}

type answerLine struct {
	Figure, Unit, Way, Arrow string
	Cells                    []answerCell
	AA                       string
}

type answerCell struct {
	Failed, Why                string // instead of all others
	Effect                     Effect
	Value, Change, Sign, Range string
	Notes                      []suspectLine
}

type suspectLine struct {
	Number                  int
	Name, Extent, Why, Cure string
	Where                   []string
}

func (r *Report) page() *page {
	h := r.Bundle
	p := &page{Title: r.title(), Host: h.Host, Circumstances: r.circumstances(), Source: h.Source, Style: template.CSS(style), //nolint:gosec // ours
		Answers: r.Answers(), Absent: r.absent(), Kept: count(r.Kept, "round"), Reproduce: r.reproduce(), Method: method,
		ID: h.ID, Orrery: h.Orrery, Experiment: h.Experiment, Digest: h.Digest, Seed: h.Seed, Facts: facts(r.Facts), Warnings: r.warnings()}
	for _, name := range r.columns() {
		p.Columns = append(p.Columns, bundle.Setting{Name: name, About: r.about(name)})
	}
	p.Span = len(p.Columns) + 2
	for i, s := range r.Suspects {
		p.Suspects = append(p.Suspects, suspectLine{i + 1, s.Name, s.extent(), ended(strings.Join(s.Why, "; ")), ended(s.Cure), s.Where})
	}
	for i := range r.Tests {
		t := &r.Tests[i]
		id := "test-" + strconv.Itoa(i+1)
		p.Groups = append(p.Groups, r.group(t, section{id, t.Name}))
		p.Tests = append(p.Tests, r.testPage(t, id))
	}
	p.Traces, p.Round = lineCharts(r.Traces), lineCharts(r.Round)
	p.Sections = p.sections()
	return p
}

// ended takes the full stop from a sentence to which the page gives its own.
func ended(text string) string { return strings.TrimSuffix(strings.TrimSpace(text), ".") }

func (p *page) sections() []section {
	all := []section{{"answer", "The answer"}}
	for _, t := range p.Tests {
		all = append(all, section{t.ID, t.Name})
	}
	if len(p.Suspects) > 0 {
		all = append(all, section{"suspect", "Suspect"})
	}
	if len(p.Traces) > 0 {
		all = append(all, section{"seconds", "Second by second"})
	}
	if len(p.Facts) > 0 {
		all = append(all, section{"facts", "The host"})
	}
	return append(all, section{"reproduce", "How to reproduce"})
}

// group is the part of the answer that a test gives.
func (r *Report) group(t *Test, s section) answerGroup {
	g := answerGroup{section: s}
	arrows := map[string]string{"more is better": "↑", "less is better": "↓"}
	for k := range t.Figures {
		f := &t.Figures[k]
		scale := f.scale()
		line := answerLine{Figure: f.Name, Unit: scale.Unit, Way: f.way(), Arrow: arrows[f.way()], AA: aa(f.Control)}
		for _, name := range r.columns() {
			line.Cells = append(line.Cells, r.answerCell(f, f.cell(name), scale))
		}
		g.Lines = append(g.Lines, line)
	}
	return g
}

func (r *Report) answerCell(f *Figure, c *Cell, s quantity.Scale) answerCell {
	switch {
	case c == nil:
		return answerCell{Failed: "–", Why: "not a part of this test"}
	case c.Summary == nil && c.Failed > 0:
		return answerCell{Failed: "failed", Why: c.Missing}
	case c.Summary == nil:
		return answerCell{Failed: "no value", Why: c.Missing}
	}
	cell := answerCell{Value: s.Number(c.Summary.Median), Effect: f.Effect(c), Sign: f.Effect(c).sign()}
	if c.Setting == experiment.Bare {
		cell.Range = s.Number(c.Summary.Low) + " to " + s.Number(c.Summary.High)
	} else if c.Ratio != nil {
		cell.Change, cell.Range = quantity.Change(c.Ratio.Value), quantity.Between(c.Ratio.Low, c.Ratio.High)+" %"
		if cell.Effect == Disturbed {
			cell.Change, cell.Range = string(Disturbed), "" // the number would be taken for one
		}
	}
	for _, m := range c.Labels {
		if !r.everywhere(m.Name) {
			cell.Notes = append(cell.Notes, suspectLine{Number: r.note(m.Name), Name: m.Name})
		}
	}
	return cell
}
