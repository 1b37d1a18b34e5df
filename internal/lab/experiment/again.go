package experiment

import "slices"

// noTwin is the value of the key again for no repeated setting.
const noTwin = "none"

// addControl adds the twin of a setting, which is the control for containers. The setting is the named
// one, or the first that can exist twice.
func (r *reading) addControl() {
	e, at := r.experiment, r.root.At("again")
	if r.bad[at] || r.file.Again != nil && *r.file.Again == noTwin {
		return
	}
	i := e.firstRepeatable()
	if r.file.Again != nil {
		named := *r.file.Again
		i = slices.IndexFunc(e.Settings, func(s Setting) bool { return s.Name == named })
		switch {
		case i < 0:
			names := []string{noTwin}
			for _, s := range e.Settings {
				names = append(names, s.Name)
			}
			r.addMistake(at, withSuggestion(mistake("again = %q: there is no such setting", named), named, names))
			return
		case !e.Settings[i].isRepeatable():
			r.addMistake(at, mistake("setting %q cannot exist twice", named).Try("name another one, or write again = %q",
				noTwin))
			return
		}
	}
	if i < 0 {
		return
	}
	twin := e.addTwin(i)
	if other := r.file.Settings.Keys[twin.Again+"-again"]; other != nil {
		r.addMistake(other, mistake("setting %q has the name of a node of setting %q", twin.Again+"-again",
			twin.Name).Try("rename it, or write again = %q", noTwin))
	}
}

// firstRepeatable returns the index of the first setting that can exist twice, or -1. It prefers a
// container, which works on every host.
func (e *Experiment) firstRepeatable() int {
	if i := slices.IndexFunc(e.Settings, func(s Setting) bool { return s.isRepeatable() && !s.Virtual() }); i >= 0 {
		return i
	}
	return slices.IndexFunc(e.Settings, Setting.isRepeatable)
}

// addTwin inserts the twin after the setting at index i. If i is -1, it does nothing.
func (e *Experiment) addTwin(i int) (twin Setting) {
	if i < 0 {
		return twin
	}
	twin = e.Settings[i]
	twin.Again, twin.Name = twin.Name, twin.Name+AgainSuffix
	e.Settings = slices.Insert(e.Settings, i+1, twin)
	return twin
}

// isTwin reports whether the setting repeats another one.
func (s Setting) isTwin() bool { return s.Again != "" }

// isRepeatable reports whether a setting can exist twice at the same time. An interface or a device of the
// host can be in only one node.
func (s Setting) isRepeatable() bool {
	return s.Missing == "" && s.Disk != Partition && (s.Network != Exclusive || s.Interface == "")
}
