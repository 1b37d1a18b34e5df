// Package schedule runs this program again at a later time, whatever happens to its caller and the
// caller's terminal: to end a trial or an expired twin.
//
// Run puts a Job on record under the host's run directory and hands it to who waits for it: a timer
// of systemd(1) where that runs the host (unit.go), else a process in a session of its own
// (process.go). List gives those that still wait and Cancel ends one, told by its record; one that
// runs already goes on. Nothing of it survives a reboot: what must is kept in a file by its caller,
// for `orrery resume` to find.
package schedule

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"orrery/internal/host"
	"orrery/internal/problem"
)

// A Job is a command line of this very program that runs after a while, whatever becomes of its
// caller and of the terminal. It does not survive a reboot: what must, is kept in a file by its
// caller, for `orrery resume` to find.
type Job struct {
	Name  string // one of the same name that waits is replaced
	After time.Duration
	Args  []string
}

// A Pending is a Job that has not run yet.
type Pending struct {
	Name string    `json:"name"`
	Due  time.Time `json:"due"`
	Args []string  `json:"args"`
	Unit string    `json:"unit,omitempty"` // of systemd, without .timer
	Pid  int       `json:"pid,omitempty"`  // of the process that waits, where there is no systemd
	// when that process began, so that another with its number is not taken for it
	Began string `json:"began,omitempty"`
}

// Run lets a command line of this program run later: by a timer of systemd(1) where that runs the
// host, else by a process of its own.
func Run(l Job, dirs host.Dirs) error {
	if l.Name == "" || strings.ContainsAny(l.Name, "/ ") || strings.HasPrefix(l.Name, ".") {
		return fmt.Errorf("%q cannot be the name of what is to run later", l.Name)
	}
	if err := Cancel(l.Name, dirs); err != nil {
		return err
	}
	program, err := os.Executable()
	if err != nil {
		return err
	}
	begin := beginProcess
	if systemdRuns() {
		begin = beginUnit
	}
	w := &Pending{Name: l.Name, Due: time.Now().Add(l.After), Args: l.Args}
	if err := begin(w, dirs, append([]string{program}, l.Args...), l.After); err != nil {
		return problem.New(problem.Failed, "%q cannot be made to run in %s", "orrery "+strings.Join(l.Args, " "), l.After).
			Because(err)
	}
	return nil
}

// keep puts it on record.
func (w *Pending) keep(dirs host.Dirs) error {
	text, err := json.Marshal(w)
	if err == nil {
		err = host.WriteFile(host.File{Path: laterPath(dirs, w.Name), Content: text, Mode: 0o600})
	}
	if err != nil {
		return errors.Join(err, w.end())
	}
	return nil
}

// Cancel sees to it that a command does not run that waits. One that runs already goes on, and that
// there is none is no error.
func Cancel(name string, dirs host.Dirs) error {
	w, err := readPending(laterPath(dirs, name))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err == nil && w.waits() {
		err = w.end()
	}
	if err != nil {
		return problem.New(problem.Failed, "what is to run later as %s cannot be stopped", name).At(laterPath(dirs, name)).
			Because(err)
	}
	return removed(laterPath(dirs, name))
}

// List returns what waits, the next first.
func List(dirs host.Dirs) ([]Pending, error) {
	paths, err := filepath.Glob(laterPath(dirs, "*"))
	if err != nil {
		return nil, err
	}
	var all []Pending
	for _, path := range paths {
		if w, err := readPending(path); err == nil && w.waits() {
			all = append(all, *w)
		}
	}
	slices.SortFunc(all, func(a, b Pending) int { return a.Due.Compare(b.Due) })
	return all, nil
}

func (w *Pending) waits() bool {
	if w.Unit != "" {
		return unitWaits(w.Unit)
	}
	return w.Pid > 0 && w.Began != "" && began(w.Pid) == w.Began
}

func (w *Pending) end() error {
	if w.Unit != "" {
		return endUnit(w.Unit)
	}
	return endProcess(w)
}

func laterPath(dirs host.Dirs, name string) string { return filepath.Join(dirs.Run, "later", name) }

func readPending(path string) (*Pending, error) {
	w, err := host.ReadJSON[Pending](path)
	return &w, err
}

func removed(path string) error {
	if err := os.Remove(path); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// began tells when a process began, in ticks since the boot; "" if there is none of that number.
func began(pid int) string {
	text, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "stat"))
	if err != nil {
		return ""
	}
	_, after, _ := strings.Cut(string(text), ") ") // the name of a program may hold anything
	fields := strings.Fields(after)
	if len(fields) < 20 || fields[0] == "Z" {
		return ""
	}
	return fields[19] // the 22nd of proc(5)
}
