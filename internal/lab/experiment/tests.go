package experiment

import (
	"errors"
	"maps"
	"slices"
	"strings"
	"time"

	"orrery/internal/problem"
	"orrery/internal/strict"
	"orrery/internal/text/pattern"
)

// tests reads [test.*].
func (r *reading) tests() {
	names := r.tables(r.file.Tests, "test", "[test.net]")
	known := strict.Keys(&r.file) // "most" is similar to "test", but correct
	misspelt := slices.ContainsFunc(r.root.Order, func(key string) bool {
		return !slices.Contains(known, key) && problem.Nearest(key, []string{"test"}) != ""
	})
	if len(names) == 0 && !misspelt && (r.file.Tests == nil || !r.bad[r.file.Tests]) {
		r.wrong(r.root, mistake("there is no test").Try("write one: [test.net], and in it kind = \"net\"; kinds: %s",
			strings.Join(r.known(), ", ")))
	}
	for _, key := range names {
		at := r.file.Tests.Keys[key]
		if t, ok := r.test(key, at); ok && r.legal(at, "test", key) {
			r.experiment.Tests = append(r.experiment.Tests, t)
		}
	}
}

// known returns the kinds of tests.
func (r *reading) known() []string { return slices.Sorted(maps.Keys(r.kinds)) }

// test reads one test. Its table contains the keys of every test and the options of its kind.
func (r *reading) test(key string, at *strict.Node) (Test, bool) {
	var own testTable
	kind, _ := at.At("kind").Value.(string)
	create, ok := r.kinds[kind]
	if !ok {
		strict.Table(at.Only(strict.Keys(&own)...), "test."+key, r.wrong, &own)
		r.noKind(key, kind, at)
		return Test{}, false
	}
	before, decoded, bad := len(r.all), false, false
	decode := func(options any) error {
		decoded = true
		mine := at.Only(strict.Keys(&own)...).Within()
		strict.Table(at, "test."+key, func(where *strict.Node, p *problem.Problem) {
			bad = bad || !mine[where]
			r.wrong(where, p)
		}, &own, options)
		if bad {
			return mistake("its options have mistakes")
		}
		return nil
	}
	made, err := create(decode)
	if !decoded { // it has no options
		strict.Table(at, "test."+key, r.wrong, &own)
	}
	if err != nil && !bad {
		r.refused(at, err)
	}
	t := Test{
		Name: key, Kind: kind, Copies: valueOf(own.Copies, copies{1}), Only: valueOf(own.Only, nil),
		Limit:  valueOf(own.Limit, 0),
		Source: own.Source, Test: made,
	}
	r.only(at, &t)
	r.limit(at, &t)
	return t, len(r.all) == before
}

// noKind reports that a test has no kind, or an unknown one.
func (r *reading) noKind(key, kind string, at *strict.Node) {
	written, ok := at.Keys["kind"]
	switch {
	case ok && r.bad[written]:
	case ok:
		r.wrong(written, choose(mistake("kind %q of test %s is not known", kind, key), kind, r.known()))
	default:
		p := mistake("test %s has no kind", key).Try("write kind = \"…\": %s", strings.Join(r.known(), ", "))
		for _, other := range at.Order {
			if problem.Nearest(other, []string{"kind"}) != "" {
				p = mistake("test %s has no kind, but a key %q", key, other).Try("write kind")
				at = at.Keys[other]
				break
			}
		}
		r.wrong(at, p)
	}
}

// firstWord matches the key at the beginning of a kind's message about its options.
var firstWord = pattern.New(`^[a-z_0-9]+`)

// refused reports a kind's mistakes about its options, each at the line of the key with which it
// begins, or which it names with At.
func (r *reading) refused(at *strict.Node, err error) {
	var list problem.List
	var one *problem.Problem
	switch {
	case errors.As(err, &list):
	case errors.As(err, &one):
		list = problem.List{one}
	default:
		list = problem.List{mistake("%v", err)}
	}
	for _, p := range list {
		told := *p
		told.Kind = problem.Mistake
		key := firstWord().FindString(told.What)
		if told.Where != "" && told.Where != key {
			key = firstWord().FindString(told.Where)
			told.What = told.Where + ": " + told.What
		}
		r.wrong(at.At(key), &told)
	}
}

// only checks the settings to which a test is restricted.
func (r *reading) only(at *strict.Node, t *Test) {
	where, written := at.Keys["only"]
	if !written || r.bad[where] {
		return
	}
	var declared []string
	if r.file.Settings != nil {
		declared = r.file.Settings.Order
	}
	if len(t.Only) == 0 {
		r.wrong(where, mistake("only names no setting").Try("leave it out for all of them"))
	}
	seen := map[string]bool{}
	for i, setting := range t.Only {
		item := where
		if i < len(where.Items) {
			item = where.Items[i]
		}
		switch {
		case setting == Bare || setting == Control:
			r.wrong(item, mistake("only names %q, which is always measured", setting).Try("take it out"))
		case !slices.Contains(declared, setting):
			r.wrong(item, choose(mistake("only names setting %q, which is not declared", setting), setting, declared))
		case seen[setting]:
			r.wrong(item, mistake("only names %q twice", setting).Try("take one out"))
		}
		seen[setting] = true
	}
}

// limit checks that a trial's timeout is not shorter than its expected duration.
func (r *reading) limit(at *strict.Node, t *Test) {
	if t.Test == nil { // its options have mistakes
		return
	}
	if needed := t.Time(); t.Limit > 0 && t.Limit < needed && !r.bad[at.At("limit")] {
		r.wrong(at.At("limit"), mistake("limit = %v is less than the %v that a trial takes", t.Limit,
			needed.Round(time.Second)).
			Try("leave it out: ten times what it takes, at least a minute"))
	}
}
