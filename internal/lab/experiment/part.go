package experiment

import (
	"slices"
	"strings"

	"orrery/internal/problem"
)

// WithTests returns the part of the experiment with the named tests, in the order of the file, and only
// the settings in which they run. Without names it returns the experiment itself.
func (e *Experiment) WithTests(names []string) (*Experiment, error) {
	if len(names) == 0 {
		return e, nil
	}
	var known []string
	for i := range e.Tests {
		known = append(known, e.Tests[i].Name)
	}
	for _, name := range names {
		if slices.Contains(known, name) {
			continue
		}
		p := problem.New(problem.Usage, "--only %s: there is no such test in the experiment", name)
		if near := problem.Suggest(name, known); near != "" {
			return nil, p.Try("did you mean %s?", near)
		}
		return nil, p.Try("its tests: %s", strings.Join(known, ", "))
	}
	part := *e
	part.Part = nil
	part.Tests = slices.DeleteFunc(slices.Clone(e.Tests), func(t Test) bool { return !slices.Contains(names, t.Name) })
	for i := range part.Tests {
		part.Part = append(part.Part, part.Tests[i].Name)
	}
	if len(part.Part) == len(known) {
		return e, nil
	}
	part.Settings = slices.DeleteFunc(slices.Clone(e.Settings), func(s Setting) bool { return !part.measures(s.Name) })
	if twin := (Setting).isTwin; slices.ContainsFunc(e.Settings, twin) && !slices.ContainsFunc(part.Settings, twin) {
		part.addTwin(part.firstRepeatable())
	}
	return &part, nil
}

// measures reports whether any test runs in a setting.
func (e *Experiment) measures(setting string) bool {
	for i := range e.Tests {
		if e.Tests[i].RunsIn(setting) {
			return true
		}
	}
	return false
}
