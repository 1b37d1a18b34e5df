package main

import (
	"go/token"
	"maps"
	"slices"
	"testing"
)

// TestMutations: all mutations of a small file are found.
func TestMutations(t *testing.T) {
	const source = `package p

func first(n int) (int, error) {
	x := 1
	if err := do(); err != nil {
		return 0, err
	}
	for x < n {
		x++
	}
	return x, nil
}

func second() error { return do() }
`
	all, err := mutationsOf("p.go", []byte(source))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, m := range all {
		got = append(got, source[m.start:m.end]+" -> "+m.text)
	}
	want := []string{
		"1 -> 2", "err != nil -> !(err != nil)", "!= -> ==", "0 -> 1", "err -> func() error { _ = error(err); return nil }()",
		"< -> <=", "< -> >=", "x++ -> ", "return do() -> { _ = error(do()); return nil }",
	}
	if !slices.Equal(got, want) {
		t.Errorf("%q\ninstead of\n%q", got, want)
	}
}

// TestRuns: a test runs the places that its coverage contains.
func TestRuns(t *testing.T) {
	tested := test{blocks: []block{{"dir/p.go", 3, 10, 5, 2}}}
	for _, c := range []struct {
		file         string
		line, column int
		want         bool
	}{
		{"/dir/p.go", 3, 10, true}, {"/dir/p.go", 3, 9, false}, {"/dir/p.go", 4, 1, true}, {"/dir/p.go", 5, 2, true},
		{"/dir/p.go", 5, 3, false}, {"/dir/q.go", 4, 1, false}, {"/other/p.go", 4, 1, false},
	} {
		if got := tested.runs(mutation{file: c.file, reach: token.Position{Line: c.line, Column: c.column}}); got != c.want {
			t.Errorf("%+v: %t", c, got)
		}
	}
}

// TestCases: the condition of a case runs when its switch does, and the body of the case runs on
// its own.
func TestCases(t *testing.T) {
	const source = `package p

func f(n int) int {
	switch {
	case n > 0:
		return 1
	}
	return 2
}
`
	all, err := mutationsOf("p.go", []byte(source))
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]int{}
	for _, m := range all {
		got[m.text] = m.reach.Line
	}
	want := map[string]int{"1": 4, ">=": 4, "<=": 4, "2": 6, "3": 8}
	if !maps.Equal(got, want) {
		t.Errorf("%v instead of %v", got, want)
	}
}

// TestLiterals: the part of a statement after a function literal runs when the statement does, and
// the body of the literal runs on its own.
func TestLiterals(t *testing.T) {
	const source = `package p

func f(all []int) bool {
	if i := slices.IndexFunc(all, func(n int) bool {
		return n > 5
	}); i >= 6 && i != 7 {
		return i < 8
	}
	return slices.ContainsFunc(all, func(n int) bool {
		return n > 9
	}) && len(all) <= 10
}
`
	all, err := mutationsOf("p.go", []byte(source))
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]int{}
	for _, m := range all {
		if m.kind == "another number" {
			got[m.text] = m.reach.Line
		}
	}
	want := map[string]int{"6": 5, "7": 4, "8": 4, "9": 7, "10": 10, "11": 9}
	if !maps.Equal(got, want) {
		t.Errorf("%v instead of %v", got, want)
	}
}
