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
		return !slices.Contains(known, key) && problem.Suggest(key, []string{"test"}) != ""
	})
	if len(names) == 0 && !misspelt && (r.file.Tests == nil || !r.bad[r.file.Tests]) {
		r.addMistake(r.root, mistake("there is no test").Try("write [test.net] with kind = \"net\"; kinds: %s",
			strings.Join(r.kindNames(), ", ")))
	}
	for _, key := range names {
		at := r.file.Tests.Keys[key]
		if t, ok := r.test(key, at); ok && r.checkName(at, "test", key) {
			r.experiment.Tests = append(r.experiment.Tests, t)
		}
	}
}

// kindNames returns the kinds of tests.
func (r *reading) kindNames() []string { return slices.Sorted(maps.Keys(r.kinds)) }

// test reads one test. Its table contains the keys of every test and the options of its kind.
func (r *reading) test(key string, at *strict.Node) (Test, bool) {
	var own testTable
	kind, _ := at.At("kind").Value.(string)
	create, ok := r.kinds[kind]
	if !ok {
		strict.Table(at.Subset(strict.Keys(&own)...), "test."+key, r.addMistake, &own)
		r.addKindMistake(key, kind, at)
		return Test{}, false
	}
	before, decoded, bad := len(r.all), false, false
	decode := func(options any) error {
		decoded = true
		mine := at.Subset(strict.Keys(&own)...).Descendants()
		strict.Table(at, "test."+key, func(where *strict.Node, p *problem.Problem) {
			bad = bad || !mine[where]
			r.addMistake(where, p)
		}, &own, options)
		if bad {
			return mistake("the test has invalid options")
		}
		return nil
	}
	made, err := create(decode)
	if !decoded { // it has no options
		strict.Table(at, "test."+key, r.addMistake, &own)
	}
	if err != nil && !bad {
		r.addOptionMistakes(at, err)
	}
	t := Test{
		Name: key, Kind: kind, Copies: valueOr(own.Copies, copies{1}), Only: valueOr(own.Only, nil),
		Limit:  valueOr(own.Limit, 0),
		Source: own.Source, Test: made,
	}
	r.checkOnly(at, &t)
	r.checkTimeout(at, &t)
	return t, len(r.all) == before
}

// addKindMistake reports that a test has no kind, or an unknown one.
func (r *reading) addKindMistake(key, kind string, at *strict.Node) {
	written, ok := at.Keys["kind"]
	switch {
	case ok && r.bad[written]:
	case ok:
		r.addMistake(written, withSuggestion(mistake("kind %q of test %s is unknown", kind, key), kind, r.kindNames()))
	default:
		p := mistake("test %s has no kind", key).Try("write kind = \"…\": %s", strings.Join(r.kindNames(), ", "))
		for _, other := range at.Order {
			if problem.Suggest(other, []string{"kind"}) != "" {
				p = mistake("test %s has the key %q, but no kind", key, other).Try("write kind")
				at = at.Keys[other]
				break
			}
		}
		r.addMistake(at, p)
	}
}

// firstWord matches the key at the beginning of a kind's message about its options.
var firstWord = pattern.New(`^[a-z_0-9]+`)

// addOptionMistakes reports a kind's mistakes about its options, each at the line of the key with which it
// begins, or which it names with At.
func (r *reading) addOptionMistakes(at *strict.Node, err error) {
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
		r.addMistake(at.At(key), &told)
	}
}

// checkOnly checks the settings to which a test is restricted.
func (r *reading) checkOnly(at *strict.Node, t *Test) {
	where, written := at.Keys["only"]
	if !written || r.bad[where] {
		return
	}
	var declared []string
	if r.file.Settings != nil {
		declared = r.file.Settings.Order
	}
	if len(t.Only) == 0 {
		r.addMistake(where, mistake("only is empty").Try("remove it to run the test in all settings"))
	}
	seen := map[string]bool{}
	for i, setting := range t.Only {
		item := where
		if i < len(where.Items) {
			item = where.Items[i]
		}
		switch {
		case setting == Bare || setting == Control:
			r.addMistake(item, mistake("only: %q is always measured", setting).Try("remove it"))
		case !slices.Contains(declared, setting):
			r.addMistake(item, withSuggestion(mistake("only: setting %q is not declared", setting), setting,
				declared))
		case seen[setting]:
			r.addMistake(item, mistake("only: %q is listed twice", setting).Try("remove one"))
		}
		seen[setting] = true
	}
}

// checkTimeout checks that a trial's timeout is not shorter than its expected duration.
func (r *reading) checkTimeout(at *strict.Node, t *Test) {
	if t.Test == nil { // the test has invalid options
		return
	}
	if needed := t.Time(); t.Limit > 0 && t.Limit < needed && !r.bad[at.At("limit")] {
		r.addMistake(at.At("limit"), mistake("limit = %v is less than the %v that a trial is expected to take", t.Limit,
			needed.Round(time.Second)).
			Try("remove it for the default, ten times that and at least a minute"))
	}
}
