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

// whys is how many different sightings of a label are told.
const whys = 3

// suspects gathers what bears each label.
func suspects(tests []*Test, s samples) []Suspect {
	by := map[string]*Suspect{}
	cells := 0
	for _, t := range tests {
		for _, f := range t.Figures {
			where := map[string][]string{}
			for _, c := range f.Cells {
				if c.Summary == nil {
					continue
				}
				cells++
				for _, m := range c.Labels {
					l := by[m.Name]
					if l == nil {
						l = &Suspect{Name: m.Name}
						by[m.Name] = l
					}
					l.Cells++
					if cure, own := cures()[m.Name]; own {
						if l.Cure = cure; len(l.Why) < whys && !slices.Contains(l.Why, m.Why) {
							l.Why = append(l.Why, m.Why)
						}
					}
					where[m.Name] = append(where[m.Name], c.Setting)
				}
			}
			for name, settings := range where {
				by[name].Where = append(by[name].Where, t.Name+", "+f.Name+": "+strings.Join(settings, ", "))
			}
		}
	}
	sightings(by, tests, s)
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

// sightings adds what was seen and the cures, in the order of the tests and settings.
func sightings(by map[string]*Suspect, tests []*Test, s samples) {
	for _, t := range tests {
		if len(t.Figures) == 0 {
			continue
		}
		for _, c := range t.Figures[0].Cells {
			for _, trial := range s.trials[place{t.Name, c.Setting}] {
				for _, l := range trial.Labels {
					if found := by[l.Name]; found != nil && trial.Round > 0 {
						found.Cure = cmp.Or(found.Cure, l.Cure)
						if len(found.Why) < whys && !slices.Contains(found.Why, l.Why) {
							found.Why = append(found.Why, l.Why)
						}
					}
				}
			}
		}
	}
}
