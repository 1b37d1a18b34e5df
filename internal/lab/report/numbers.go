package report

import (
	"fmt"
	"strings"

	"orrery/internal/lab/experiment"
	"orrery/internal/lab/report/quantity"
	"orrery/internal/lab/stats"
)

// A line holds the texts of one cell.
type line struct {
	Setting, Why                                string // Why replaces all other texts
	Value, Median, Interval, Reach, N, Relative string
	Change, Range, Spread, Probability, Bear    string
	Verdict                                     Effect
}

// Lines returns the lines of all cells, except for settings that are not available.
func (f *Figure) Lines() (all []line) {
	s := f.Scale()
	for _, c := range f.Cells {
		if !c.absent() {
			all = append(all, f.line(c, s))
		}
	}
	return all
}

func (f *Figure) line(c *Cell, s quantity.Scale) line {
	if c.Summary == nil {
		return line{Setting: c.Setting, Why: firstLine(c.Missing)}
	}
	sum := c.Summary
	l := line{Setting: c.Setting, Value: s.Value(sum.Median), Median: s.Number(sum.Median),
		Interval: formatInterval(sum, s),
		Reach:    s.Number(sum.Least) + " to " + s.Number(sum.Most), N: fmt.Sprint(sum.N), Verdict: f.Effect(c),
		Bear: strings.Join(c.labelTexts(), ", ")}
	switch x := c.Ratio; {
	case c.Setting == experiment.Bare:
		l.Relative = "100"
	case f.Effect(c) == Disturbed:
		l.Relative, l.Change, l.Range, l.Spread, l.Probability = "–", "–", "–", "–", "–"
	case x != nil:
		l.Relative, l.Change, l.Range, l.Spread = quantity.Percent(x.Value), quantity.Change(x.Value), x.between(), x.spread()
		if isJudged(f.Better) && c.Again == "" {
			l.Probability = formatProbability(x.Adjusted)
		}
	}
	return l
}

// formatInterval returns the interval of a median.
func formatInterval(sum *stats.Summary, s quantity.Scale) string {
	return markRange(s.Number(sum.Low)+" to "+s.Number(sum.High), sum.Range)
}

// Numbers returns the table of a figure, with a row for each setting.
func (f *Figure) Numbers() *grid {
	median := unitHead("median", f.Scale())
	g := &grid{Head: []string{"setting", median, "95 %", "n", "% of bare", "change", "95 %", "spread of instances, rounds",
		"verdict", "suspect"}}
	for _, l := range f.Lines() {
		verdict := string(l.Verdict)
		if l.Why != "" {
			l.Median, verdict = "–", l.Why
		}
		g.add(l.Setting, l.Median, l.Interval, l.N, l.Relative, l.Change, l.Range, l.Spread, verdict, l.Bear)
	}
	return g
}

func unitHead(name string, s quantity.Scale) string {
	if s.Unit == "" {
		return name
	}
	return name + ", " + s.Unit
}

// spread returns the contributions of instances and of rounds to the spread of a ratio.
func (x *Ratio) spread() string {
	if !x.Between.IsFinite() || !x.Within.IsFinite() {
		return "–"
	}
	return quantity.Percent(float64(x.Between)) + ", " + quantity.Percent(float64(x.Within)) + " %"
}

// labelTexts returns the labels of a cell, with the number of trials if not all of them have the
// label.
func (c *Cell) labelTexts() (all []string) {
	for _, m := range c.Labels {
		text := m.Name
		if m.Count < m.Of {
			text += fmt.Sprintf(" %d/%d", m.Count, m.Of)
		}
		all = append(all, text)
	}
	return all
}

func formatProbability(p float64) string {
	if p < 0.001 {
		return "< 0.001"
	}
	return fmt.Sprintf("%.3f", p)
}
