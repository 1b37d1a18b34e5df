package experiment

import (
	"fmt"
	"slices"
	"strings"
)

// fit checks the rules that involve both settings and tests.
func (r *reading) fit() {
	e := r.experiment
	for i := range e.Tests {
		t := &e.Tests[i]
		at := r.file.Tests.Keys[t.Name]
		many := slices.Max(t.Copies)
		if many == 1 {
			continue
		}
		for _, s := range e.Settings {
			if s.Missing == "" && many > s.Most() && t.In(s.Name) {
				r.wrong(at.At("copies"), mistake("test %s cannot have %d copies in setting %s: %s", t.Name, many, s.Name,
					s.lacks()).
					Try("write %s in the test", otherThan(e.Settings, s.Name, many)))
			}
			if other := r.hidden(s.Name, many); t.In(s.Name) && other != "" {
				r.wrong(r.file.Settings.Keys[other], mistake("setting %q is called as one of the %d copies of setting %s is",
					other, many, s.Name).Try("rename it"))
			}
		}
	}
}

// hidden returns the setting whose name equals the node name of another setting's copy, or "".
func (r *reading) hidden(setting string, copies int) string {
	for _, s := range r.experiment.Settings {
		for n := 2; n <= copies; n++ {
			if s.Name == fmt.Sprintf("%s-%d", setting, n) {
				return s.Name
			}
		}
	}
	return ""
}

// otherThan returns the key that restricts a test to the settings that permit several copies.
func otherThan(settings []Setting, not string, copies int) string {
	var names []string
	for _, s := range settings {
		if s.Name != not && copies <= s.Most() {
			names = append(names, fmt.Sprintf("%q", s.Name))
		}
	}
	return "only = [" + strings.Join(names, ", ") + "]"
}
