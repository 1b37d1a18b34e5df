package experiment

import (
	"fmt"
	"slices"
	"strings"
)

// checkCombinations checks the rules that involve both settings and tests.
func (r *reading) checkCombinations() {
	e := r.experiment
	for i := range e.Tests {
		t := &e.Tests[i]
		at := r.file.Tests.Keys[t.Name]
		many := slices.Max(t.Copies)
		if many == 1 {
			continue
		}
		for _, s := range e.Settings {
			if s.Missing == "" && many > s.MaxNodes() && t.RunsIn(s.Name) {
				r.addMistake(at.At("copies"), mistake("test %s cannot have %d copies in setting %s: %s", t.Name, many, s.Name,
					s.maxNodesReason()).
					Try("write %s in the test", onlyKey(e.Settings, s.Name, many)))
			}
			if other := r.hiddenSetting(s.Name, many); t.RunsIn(s.Name) && other != "" {
				r.addMistake(r.file.Settings.Keys[other], mistake("setting %q has the name of one of the %d copies of setting %s",
					other, many, s.Name).Try("rename it"))
			}
		}
	}
}

// hiddenSetting returns the setting whose name equals the node name of another setting's copy, or "".
func (r *reading) hiddenSetting(setting string, copies int) string {
	for _, s := range r.experiment.Settings {
		for n := 2; n <= copies; n++ {
			if s.Name == fmt.Sprintf("%s-%d", setting, n) {
				return s.Name
			}
		}
	}
	return ""
}

// onlyKey returns the key that restricts a test to the settings that permit several copies.
func onlyKey(settings []Setting, not string, copies int) string {
	var names []string
	for _, s := range settings {
		if s.Name != not && copies <= s.MaxNodes() {
			names = append(names, fmt.Sprintf("%q", s.Name))
		}
	}
	return "only = [" + strings.Join(names, ", ") + "]"
}
