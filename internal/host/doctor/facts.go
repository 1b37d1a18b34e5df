// Package doctor examines which requirements of nodes a machine meets, and how to meet the others.
//
// Look returns Facts. What can be tried is tried and not derived from a version: it creates a
// bridge, mounts an overlay and loads a rule. Each trial runs in namespaces of its own that vanish
// with it. So a fact holds whatever the distribution has patched, and the machine stays unchanged.
// Facts that are Needed and not OK prevent every node from running. For those that are Wanted, the
// value says what does not work.
//
// The command `orrery doctor` prints the facts. The lab adds what makes its results doubtful
// (lab/suspect) in the same form.
package doctor

import (
	"os"
	"path/filepath"
	"strings"
)

// A Level is how important a fact is.
type Level string

// The levels.
const (
	Required    Level = "needed" // without it, no node runs
	Recommended Level = "wanted" // without it, something does not work, or not as well
	Info        Level = "info"   // good to know
)

// A Fact is a property of a machine that matters to nodes.
type Fact struct {
	Name  string `json:"name"`
	OK    bool   `json:"ok"`
	Level Level  `json:"level"`
	Value string `json:"value"`         // what was found
	Fix   string `json:"fix,omitempty"` // what to do, if it is not OK
}

// Facts are the facts about a machine.
type Facts []Fact

// Unmet returns the facts of a level that are not OK.
func (f Facts) Unmet(level Level) Facts {
	var some Facts
	for _, fact := range f {
		if !fact.OK && fact.Level == level {
			some = append(some, fact)
		}
	}
	return some
}

// Examine examines what this machine can do for nodes with the given state directory. What can be
// tried is tried in namespaces of its own, which vanish with the trial. Look does not change the
// machine.
func Examine(stateDir string) Facts {
	m := machine{root: "/"}
	var all Facts
	for _, look := range []func() Facts{
		m.system, m.kernel, m.namespaces, m.cgroups, m.containers, programs, m.network, m.limits,
		func() Facts { return lxcfs(m) }, func() Facts { return disk(stateDir) }, m.virtualMachines,
		func() Facts { return virtualFunctions(m) },
	} {
		all = append(all, look()...)
	}
	return all
}

// A machine is the root directory from which facts are read.
type machine struct {
	root string // "/", except in tests
}

// read returns the trimmed text of a file, or "".
func (m machine) read(path string) string {
	text, _ := os.ReadFile(filepath.Join(m.root, path))
	return strings.TrimSpace(string(text))
}

func (m machine) has(path string) bool {
	_, err := os.Stat(filepath.Join(m.root, path))
	return err == nil
}

// field returns the value of a key in a file with lines like those of proc_meminfo(5), or "". If
// there are several, it returns the first one.
func (m machine) field(path, key string) string {
	for line := range strings.Lines(m.read(path)) {
		if name, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(name) == key {
			return strings.TrimSpace(value)
		}
	}
	return ""
}

// trialFact returns the fact for the result of a trial.
func trialFact(name string, level Level, err error, fix string) Fact {
	if err != nil {
		return Fact{name, false, level, err.Error(), fix}
	}
	return Fact{name, true, level, "usable", ""}
}
