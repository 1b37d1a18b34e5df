package apply

import (
	"time"

	"orrery/internal/plan"
)

// Measured returns the time between the first and the last host that moved its links, and how long
// the plan disturbed the site.
func (r *Result) Measured(p *plan.Plan) (skew, outage time.Duration) {
	var first, last, disturbed, over time.Time
	for _, s := range p.Steps {
		t, done := r.Spans[s.N]
		if !done {
			continue
		}
		if s.Kind == plan.MoveLinks {
			if first.IsZero() || t.Ended.Before(first) {
				first = t.Ended
			}
			if t.Ended.After(last) {
				last = t.Ended
			}
		}
		if len(s.Disturbs) > 0 && (disturbed.IsZero() || t.Began.Before(disturbed)) {
			disturbed = t.Began
		}
		if s.ForNode() && t.Ended.After(over) || s.Kind == plan.MoveLinks && t.Ended.After(over) {
			over = t.Ended
		}
	}
	if disturbed.IsZero() {
		return 0, 0
	}
	return last.Sub(first), over.Sub(disturbed)
}
