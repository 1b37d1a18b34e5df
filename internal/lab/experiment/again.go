package experiment

import "slices"

// noTwin is what is written for no setting to be measured twice.
const noTwin = "none"

// again adds the twin of a setting, the control of containers: the one that is named, or the first
// that can be had twice.
func (r *reading) again() {
	e, at := r.experiment, r.root.At("again")
	if r.bad[at] || r.file.Again != nil && *r.file.Again == noTwin {
		return
	}
	i := e.firstTwice()
	if r.file.Again != nil {
		named := *r.file.Again
		i = slices.IndexFunc(e.Settings, func(s Setting) bool { return s.Name == named })
		switch {
		case i < 0:
			names := []string{noTwin}
			for _, s := range e.Settings {
				names = append(names, s.Name)
			}
			r.wrong(at, choose(mistake("again = %q is not a setting", named), named, names))
			return
		case !e.Settings[i].twice():
			r.wrong(at, mistake("setting %q cannot be had twice", named).Try("name another one, or write again = %q", noTwin))
			return
		}
	}
	if i < 0 {
		return
	}
	twin := e.addTwin(i)
	if other := r.file.Settings.Keys[twin.Again+"-again"]; other != nil {
		r.wrong(other, mistake("setting %q is called as the node of %q is", twin.Again+"-again",
			twin.Name).Try("rename it, or write again = %q", noTwin))
	}
}

// firstTwice is the index of the first setting that can be had twice, a container if there is one,
// since every host can have that; or -1.
func (e *Experiment) firstTwice() int {
	if i := slices.IndexFunc(e.Settings, func(s Setting) bool { return s.twice() && !s.Virtual() }); i >= 0 {
		return i
	}
	return slices.IndexFunc(e.Settings, Setting.twice)
}

// addTwin adds the twin of the setting with an index behind it; of -1 there is none.
func (e *Experiment) addTwin(i int) (twin Setting) {
	if i < 0 {
		return twin
	}
	twin = e.Settings[i]
	twin.Again, twin.Name = twin.Name, twin.Name+Again
	e.Settings = slices.Insert(e.Settings, i+1, twin)
	return twin
}

// isTwin reports whether the setting is another once more.
func (s Setting) isTwin() bool { return s.Again != "" }

// twice reports whether a setting can be had twice at once: an interface or a device of the host is
// in one node only.
func (s Setting) twice() bool {
	return s.Missing == "" && s.Disk != Partition && (s.Network != Exclusive || s.Interface == "")
}
