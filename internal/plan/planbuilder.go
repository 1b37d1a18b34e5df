package plan

import (
	"slices"

	"orrery/internal/observe"
	"orrery/internal/site"
)

// A planBuilder is an unfinished plan: the steps so far, in the order in which they were added, and the
// claims that they free.
type planBuilder struct {
	*planInput
	Plan
	frees    freed
	settled  map[string][]int // node -> the steps that finish its interrupted move
	arrivals map[string][]int // host -> the steps by which nodes arrive from other hosts
}

func newPlanBuilder(s *site.Site, hosts []observe.Host, goal Goal) *planBuilder {
	return &planBuilder{
		planInput: newPlanInput(s, hosts, goal), Plan: Plan{Site: s.Name}, frees: freed{},
		settled: map[string][]int{}, arrivals: map[string][]int{},
	}
}

// add appends a step and returns its number.
func (d *planBuilder) add(s Step) int {
	s.N = len(d.Steps)
	s.Needs = slices.Clone(s.Needs) // callers may share a list between steps, and sorted writes to it
	d.Steps = append(d.Steps, &s)
	return s.N
}

// sorted returns the plan in an order in which every step comes after those that it needs.
// Otherwise the order in which the steps were added is kept.
func (d *planBuilder) sorted() *Plan {
	place := make([]int, len(d.Steps))
	for i := range place {
		place[i] = -1
	}
	ordered := make([]*Step, 0, len(d.Steps))
	var visit func(n int)
	visit = func(n int) {
		if place[n] >= 0 {
			return
		}
		place[n] = len(d.Steps) // being visited
		for _, need := range d.Steps[n].Needs {
			visit(need)
		}
		place[n] = len(ordered)
		ordered = append(ordered, d.Steps[n])
	}
	for n := range d.Steps {
		visit(n)
	}
	for n, s := range ordered {
		s.N = n
		for i, need := range s.Needs {
			s.Needs[i] = place[need]
		}
		slices.Sort(s.Needs)
		s.Needs = slices.Compact(s.Needs)
		// A cycle, which package check refuses, is cut here. Otherwise no step of it could begin.
		s.Needs = slices.DeleteFunc(s.Needs, func(need int) bool { return need >= n })
	}
	d.Steps = ordered
	return &d.Plan
}
