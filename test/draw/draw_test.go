package main

import (
	"slices"
	"testing"
)

// TestTexts: comments of declarations, messages with their constant parts, and sentences outside of
// code are found.
func TestTexts(t *testing.T) {
	const source = `// Package p has
// a comment.
package p

//go:embed file
var b []byte

// A T is a type.
type T struct {
	N int // its number
}

// f returns an error.
func f(s string) error {
	// This is no doc comment.
	if s == "" {
		return problem.New(problem.Usage, "the text "+"is empty").Try("name %s", s)
	}
	return errors.New("f of " + s)
}
`
	const page = "# A heading of several words\n\nOne sentence has five words. Short one.\nAnother, that goes on\n" +
		"in the next line: `code` begins a part of it.\n\n```console\n$ this is not a sentence at all\n```\n\n" +
		"| cell | a cell that is long enough |\n* an item of the list\n"
	for kind, c := range map[string]struct {
		of   func(string, []byte) ([]text, error)
		text string
		want []string
	}{
		"comments": {comments, source, []string{"Package p has a comment. [package p]", "A T is a type. [type T]",
			"its number [field N]", "f returns an error. [func f]"}},
		"messages": {messages, source, []string{"name %s", "the text is empty", "f of …"}},
		"sentences": {sentences, page, []string{"One sentence has five words.", "Another, that goes on in the next line:",
			"`code` begins a part of it.", "a cell that is long enough", "an item of the list"}},
	} {
		all, err := c.of("a.go", []byte(c.text))
		var got []string
		for _, one := range all {
			got = append(got, one.what)
		}
		if err != nil || !slices.Equal(got, c.want) {
			t.Errorf("%s: %q, %v\ninstead of\n%q", kind, got, err, c.want)
		}
	}
}

// TestChoose: a seed determines the draw, which has no text twice.
func TestChoose(t *testing.T) {
	all := func() (all []text) {
		for i := range 100 {
			all = append(all, text{what: string(rune('a' + i))})
		}
		return all
	}
	first, same, other := choose(all(), 30, 5), choose(all(), 30, 5), choose(all(), 30, 6)
	if len(first) != 30 || !slices.Equal(first, same) || slices.Equal(first, other) {
		t.Errorf("%q, %q, %q", first, same, other)
	}
	slices.SortFunc(first, func(a, b text) int { return int([]rune(a.what)[0]) - int([]rune(b.what)[0]) })
	if len(slices.Compact(first)) != 30 || len(choose(all(), 200, 5)) != 100 {
		t.Errorf("%q", first)
	}
}
