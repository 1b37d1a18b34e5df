// Package doctor examines a machine: which requirements of nodes it meets, and how to meet the
// others.
//
// Look returns Facts. What can be tried is tried and not read from a version: a bridge is made, an overlay is
// mounted, a rule is loaded, each in namespaces of its own that vanish with the trial. So a fact holds
// whatever the distribution has patched, and the machine is left as it was. Facts that are Needed and not OK
// keep every node from running; those that are Wanted cost something that the fact's value tells.
//
// The command `orrery doctor` prints them, and the lab adds what makes its figures doubtful
// (lab/suspect) in the same form.
package doctor

import (
	"os"
	"path/filepath"
	"strings"
)

// A Level says how much a fact matters.
type Level string

// The levels.
const (
	Needed Level = "needed" // without it no node runs
	Wanted Level = "wanted" // without it something does not work, or not as well
	Info   Level = "info"   // good to know
)

// A Fact is something about a machine that matters to nodes.
type Fact struct {
	Name  string `json:"name"`
	OK    bool   `json:"ok"`
	Level Level  `json:"level"`
	Value string `json:"value"`         // as found
	Fix   string `json:"fix,omitempty"` // what to do, if it is not OK
}

// Facts are what is to be known about a machine.
type Facts []Fact

// Lacking returns the facts of a level that are not as they should be.
func (f Facts) Lacking(level Level) Facts {
	var some Facts
	for _, fact := range f {
		if !fact.OK && fact.Level == level {
			some = append(some, fact)
		}
	}
	return some
}

// Look finds out what this machine can do for nodes whose state is kept in a directory. What can be
// tried is tried, in namespaces of its own that vanish with the trial; nothing on the machine is
// changed.
func Look(stateDir string) Facts {
	m := machine{root: "/"}
	var all Facts
	for _, look := range []func() Facts{
		m.system, m.kernel, m.namespaces, m.cgroups, m.containers, programs, m.network, m.limits,
		func() Facts { return disk(stateDir) }, m.machines,
	} {
		all = append(all, look()...)
	}
	return all
}

// A machine is what facts are read from.
type machine struct {
	root string // "/", but for tests
}

// read returns the text of a file, trimmed, or "".
func (m machine) read(path string) string {
	text, _ := os.ReadFile(filepath.Join(m.root, path))
	return strings.TrimSpace(string(text))
}

func (m machine) has(path string) bool {
	_, err := os.Stat(filepath.Join(m.root, path))
	return err == nil
}

// field returns the value of a key in a file with lines like those of proc_meminfo(5), or "". The
// first one counts.
func (m machine) field(path, key string) string {
	for line := range strings.Lines(m.read(path)) {
		if name, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(name) == key {
			return strings.TrimSpace(value)
		}
	}
	return ""
}

// proven is a fact that was tried.
func proven(name string, level Level, err error, fix string) Fact {
	if err != nil {
		return Fact{name, false, level, err.Error(), fix}
	}
	return Fact{name, true, level, "usable", ""}
}
