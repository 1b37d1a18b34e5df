package report

import (
	"fmt"
	"math"
	"strings"

	"orrery/internal/lab/bundle"
	"orrery/internal/lab/report/quantity"
	"orrery/internal/lab/stats"
	"orrery/internal/text/humanize"
)

// Warnings returns what is shown before the answer because it concerns all of it.
func (r *Report) Warnings() (all []string) {
	switch r.Bundle.State {
	case bundle.Interrupted:
		all = append(all, "This run was interrupted and has too few rounds. Run the experiment again to resume it.")
	case bundle.Running:
		all = append(all, "This run is still in progress.")
	}
	all = append(all, r.reliabilityWarnings()...)
	if text := r.Tests.unsteady(); text != "" {
		all = append(all, text)
	}
	if text := r.moreRoundsNote(); text != "" {
		all = append(all, text)
	}
	if len(r.Damaged) > 0 {
		all = append(all, fmt.Sprintf("%s of the bundle cannot be read and are missing from this report: %s",
			humanize.Plural(len(r.Damaged), "line"), strings.Join(r.Damaged, "; ")))
	}
	return all
}

// unsteady returns where a control differs so much from what it repeats that the cost of a setting
// is not measurable.
func (tests Table) unsteady() string {
	const told = 5
	var where []string
	most, of := 0.0, 0
	for t, f := range tests.Rows() {
		if f.Control == nil || !isJudged(f.Better) {
			continue
		}
		of++
		by := max(math.Abs(f.Control.Low-1), math.Abs(f.Control.High-1))
		if by > stats.Margin {
			where = append(where, f.Name+" in "+t.Name)
			most = max(most, by)
		}
	}
	if len(where) == 0 {
		return ""
	}
	text := fmt.Sprintf("In %d of %d figures, identical settings may differ by up to %s %%, so smaller costs cannot be detected there: %s",
		len(where), of,
		quantity.Percent(most), strings.Join(where[:min(told, len(where))], ", "))
	if more := len(where) - told; more > 0 {
		text += fmt.Sprintf(", and %d more", more)
	}
	return text + "."
}
