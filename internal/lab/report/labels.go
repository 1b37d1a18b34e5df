package report

import (
	"cmp"
	"slices"
	"strings"

	"orrery/internal/lab/bundle"
)

// marks merges the labels of a cell's trials that concern a figure. Round 0 does not count.
func marks(trials []bundle.Trial, figure string) (all []Mark) {
	of := 0
	for _, t := range trials {
		if t.Round == 0 {
			continue
		}
		of++
		seen := map[string]bool{}
		for _, l := range t.Labels {
			if !strings.HasPrefix(figure, l.Where) || seen[l.Name] {
				continue
			}
			seen[l.Name] = true
			i := slices.IndexFunc(all, func(m Mark) bool { return m.Name == l.Name })
			if i < 0 {
				i = len(all)
				all = append(all, Mark{Name: l.Name})
			}
			all[i].Count++
			all[i].Why = l.Why
		}
	}
	for i := range all {
		all[i].Of = of
	}
	slices.SortFunc(all, func(a, b Mark) int { return cmp.Compare(a.Name, b.Name) })
	return all
}

// maxObservations limits the number of different observations listed for a label.
const maxObservations = 3

// suspects collects the cells that have each label.
func suspects(r *Report, s samples) []Suspect {
	by := map[string]*Suspect{}
	cells := 0
	for t, f := range r.Tests.Rows() {
		where := map[string][]string{}
		for _, c := range f.Cells {
			if c.Summary == nil {
				continue
			}
			cells++
			for _, m := range c.Labels {
				l := by[m.Name]
				if l == nil {
					l = &Suspect{Name: m.Name, Cure: cures[m.Name]}
					by[m.Name] = l
				}
				l.Cells++
				if l.Cure != "" { // one of the report's own labels
					l.addObservation(m.Why)
				}
				where[m.Name] = append(where[m.Name], c.Setting)
			}
		}
		for name, settings := range where {
			by[name].Where = append(by[name].Where, t.Name+", "+f.Name+": "+strings.Join(settings, ", "))
		}
	}
	addObservations(by, r, s)
	var all []Suspect
	for _, l := range by {
		l.Of = cells
		if l.Cells == cells {
			l.Where = nil
		}
		all = append(all, *l)
	}
	slices.SortFunc(all, func(a, b Suspect) int { return cmp.Or(b.Cells-a.Cells, cmp.Compare(a.Name, b.Name)) })
	return all
}

// addObservation adds an observation, unless it is known or there are enough.
func (s *Suspect) addObservation(why string) {
	if len(s.Why) < maxObservations && !slices.Contains(s.Why, why) {
		s.Why = append(s.Why, why)
	}
}

// addObservations adds observations and cures, in the order of the tests and settings.
func addObservations(by map[string]*Suspect, r *Report, s samples) {
	for _, t := range r.Tests {
		if len(t.Figures) == 0 {
			continue
		}
		for _, c := range t.Figures[0].Cells {
			for _, trial := range s.trials[cellKey{t.Name, c.Setting}] {
				for _, l := range trial.Labels {
					if found := by[l.Name]; found != nil && trial.Round > 0 {
						found.Cure = cmp.Or(found.Cure, l.Cure)
						found.addObservation(l.Why)
					}
				}
			}
		}
	}
}
