package report

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"orrery/internal/lab/bundle"
	"orrery/internal/lab/report/quantity"
	"orrery/internal/text/humanize"
)

// Title returns the title of the report.
func (r *Report) Title() string { return cmp.Or(r.Bundle.Title, r.Bundle.Experiment, "Experiment") }

// Circumstances returns one line with the host, the time and the extent of the run.
func (r *Report) Circumstances() string {
	h := r.Bundle
	parts := []string{h.Host, h.Began.UTC().Format("2006-01-02 15:04 UTC")}
	if took := h.Ended.Sub(h.Began); took > 0 {
		parts = append(parts, "took "+formatDuration(took))
	}
	if len(h.Part) > 0 {
		parts = append(parts, "only the tests "+strings.Join(h.Part, ", "))
	}
	parts = append(parts, humanize.Plural(r.Kept, "round")+" kept", humanize.Plural(r.instances(), "instance"),
		humanize.Plural(r.Trials, "trial"))
	if r.Failed > 0 {
		parts = append(parts, fmt.Sprintf("%d failed", r.Failed))
	}
	if between, within, ok := r.Tests.spread(); ok {
		parts = append(parts, fmt.Sprintf("ratios vary by %s %% between instances and by %s %% between rounds",
			quantity.Percent(between), quantity.Percent(within)))
	}
	if h.State != bundle.Done {
		parts = append(parts, "not finished: "+string(h.State))
	}
	return strings.Join(parts, ", ")
}

// Extent returns how much of the report has the label.
func (s Suspect) Extent() string {
	if s.Cells == s.Of {
		return "everywhere"
	}
	return fmt.Sprintf("%d of %d cells", s.Cells, s.Of)
}

// formatDuration formats a duration for readers: 42 s, 13 min, 2 h 5 min.
func formatDuration(d time.Duration) string {
	minutes := int(d.Round(time.Minute).Minutes())
	switch {
	case d < 2*time.Minute:
		return fmt.Sprintf("%.0f s", d.Seconds())
	case minutes < 60:
		return fmt.Sprintf("%d min", minutes)
	}
	return fmt.Sprintf("%d h %d min", minutes/60, minutes%60)
}
