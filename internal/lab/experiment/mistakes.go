package experiment

import (
	"cmp"
	"fmt"
	"slices"

	"orrery/internal/problem"
	"orrery/internal/strict"
)

// mistakes collects the mistakes in a file.
type mistakes struct {
	path string
	all  []lineMistake
	bad  map[*strict.Node]bool // nodes with a mistake, which other rules need not check
}

// A lineMistake is a mistake with its line number.
type lineMistake struct {
	*problem.Problem
	line int
}

func mistake(format string, args ...any) *problem.Problem {
	return problem.New(problem.Mistake, format, args...)
}

// addMistake adds a mistake at a place in the file.
func (m *mistakes) addMistake(at *strict.Node, p *problem.Problem) {
	if m.bad == nil {
		m.bad = map[*strict.Node]bool{}
	}
	m.bad[at] = true
	m.all = append(m.all, lineMistake{p.At(fmt.Sprintf("%s:%d", m.path, at.Line)), at.Line})
}

// sorted returns the mistakes by line, without duplicates.
func (m *mistakes) sorted() problem.List {
	slices.SortStableFunc(m.all, func(a, b lineMistake) int { return cmp.Compare(a.line, b.line) })
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
