package experiment

import (
	"cmp"
	"fmt"
	"slices"

	"orrery/internal/problem"
	"orrery/internal/strict"
)

// mistakes are those that are found in a file.
type mistakes struct {
	path string
	all  []told
	bad  map[*strict.Node]bool // what has been told to be wrong: no rule need look at it
}

// A told mistake knows its line.
type told struct {
	*problem.Problem
	line int
}

func mistake(format string, args ...any) *problem.Problem {
	return problem.New(problem.Mistake, format, args...)
}

// wrong adds a mistake at a place of the file.
func (m *mistakes) wrong(at *strict.Node, p *problem.Problem) {
	if m.bad == nil {
		m.bad = map[*strict.Node]bool{}
	}
	m.bad[at] = true
	m.all = append(m.all, told{p.At(fmt.Sprintf("%s:%d", m.path, at.Line)), at.Line})
}

// sorted returns the mistakes by line, each once.
func (m *mistakes) sorted() problem.List {
	slices.SortStableFunc(m.all, func(a, b told) int { return cmp.Compare(a.line, b.line) })
	var list problem.List
	seen := map[string]bool{}
	for _, one := range m.all {
		if text := one.Error(); !seen[text] {
			seen[text] = true
			list = append(list, one.Problem)
		}
	}
	return list
}
