package report

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"orrery/internal/lab/bundle"
	"orrery/internal/lab/report/quantity"
)

func (r *Report) title() string { return cmp.Or(r.Bundle.Title, r.Bundle.Experiment, "Experiment") }

// circumstances tells in a line where, when and how much.
func (r *Report) circumstances() string {
	h := r.Bundle
	parts := []string{h.Host, h.Began.UTC().Format("2006-01-02 15:04 UTC")}
	if took := h.Ended.Sub(h.Began); took > 0 {
		parts = append(parts, "took "+lasting(took))
	}
	parts = append(parts, count(r.Kept, "round")+" kept", count(r.instances(), "instance"), count(r.Trials, "trial"))
	if r.Failed > 0 {
		parts = append(parts, fmt.Sprintf("%d failed", r.Failed))
	}
	if between, within := r.spread(); between.Is() {
		parts = append(parts, fmt.Sprintf("instances add %s %% to the spread of ratios and rounds %s %%", quantity.Percent(float64(between)), quantity.Percent(float64(within))))
	}
	if h.State != bundle.Done {
		parts = append(parts, "not finished: "+string(h.State))
	}
	return strings.Join(parts, ", ")
}

// extent says how much of the report bears a label.
func (s Suspect) extent() string {
	if s.Cells == s.Of {
		return "everywhere"
	}
	return fmt.Sprintf("%d of %d cells", s.Cells, s.Of)
}

func first(all []string) string {
	if len(all) == 0 {
		return ""
	}
	return all[0]
}

func firstLine(text string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(text), "\n")
	return line
}

// lasting shows a duration as one says it: 42 s, 13 min, 2 h 5 min.
func lasting(d time.Duration) string {
	minutes := int(d.Round(time.Minute).Minutes())
	switch {
	case d < 2*time.Minute:
		return fmt.Sprintf("%.0f s", d.Seconds())
	case minutes < 60:
		return fmt.Sprintf("%d min", minutes)
	}
	return fmt.Sprintf("%d h %d min", minutes/60, minutes%60)
}

// unbroken keeps numbers and their units on one line.
func unbroken(text string) string { return strings.ReplaceAll(text, " %", "\u00a0%") }
