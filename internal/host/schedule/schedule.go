// Package schedule runs this program again at a later time, to end a trial or an expired twin.
//
// A Job runs even if its caller has ended and the caller's terminal is closed. Run records the Job
// under the host's run directory. Then it starts a timer of systemd(1) if that runs the host
// (unit.go), otherwise a process in a session of its own (process.go). List returns the jobs that
// still wait. Cancel stops one that waits, found by its record, but not one that runs already. No
// job survives a reboot. What must survive is stored in a file by the caller, for `orrery resume`
// to find.
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

// A Job is a command line of this program that runs after a delay, even if its caller has ended. It
// does not survive a reboot. What must survive is stored in a file by the caller, for `orrery
// resume` to find.
type Job struct {
	Name  string // replaces a waiting job of the same name
	After time.Duration
	Args  []string
}

// A Pending is a Job that has not run yet.
type Pending struct {
	Name string    `json:"name"`
	Due  time.Time `json:"due"`
	Args []string  `json:"args"`
	Unit string    `json:"unit,omitempty"` // unit of systemd, without .timer
	Pid  int       `json:"pid,omitempty"`  // of the process that waits, without systemd
	// when that process started, so that another process with its PID is not mistaken for it
	Began string `json:"began,omitempty"`
}

// Run runs a command line of this program later: by a timer of systemd(1) if that runs the host,
// otherwise by a process of its own.
func Run(l Job, dirs host.Dirs) error {
	if l.Name == "" || strings.ContainsAny(l.Name, "/ ") || strings.HasPrefix(l.Name, ".") {
		return fmt.Errorf("%q is not a valid name of a scheduled job", l.Name)
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
		return problem.New(problem.Failed, "%q could not be scheduled to run in %s", "orrery "+strings.Join(l.Args, " "), l.After).
			Because(err)
	}
	return nil
}

// writeRecord writes the record.
func (w *Pending) writeRecord(dirs host.Dirs) error {
	text, err := json.Marshal(w)
	if err == nil {
		err = host.WriteFile(host.File{Path: recordPath(dirs, w.Name), Content: text, Mode: 0o600})
	}
	if err != nil {
		return errors.Join(err, w.cancel())
	}
	return nil
}

// Cancel stops a command that waits. It does not stop a command that runs already. If there is
// none, it returns nil.
func Cancel(name string, dirs host.Dirs) error {
	w, err := readPending(recordPath(dirs, name))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err == nil && w.isWaiting() {
		err = w.cancel()
	}
	if err != nil {
		return problem.New(problem.Failed, "the scheduled job %s could not be cancelled", name).At(recordPath(dirs, name)).
			Because(err)
	}
	return removeFile(recordPath(dirs, name))
}

// List returns the jobs that wait, the next one first.
func List(dirs host.Dirs) ([]Pending, error) {
	paths, err := filepath.Glob(recordPath(dirs, "*"))
	if err != nil {
		return nil, err
	}
	var all []Pending
	for _, path := range paths {
		if w, err := readPending(path); err == nil && w.isWaiting() {
			all = append(all, *w)
		}
	}
	slices.SortFunc(all, func(a, b Pending) int { return a.Due.Compare(b.Due) })
	return all, nil
}

func (w *Pending) isWaiting() bool {
	if w.Unit != "" {
		return unitWaits(w.Unit)
	}
	return w.Pid > 0 && w.Began != "" && startTime(w.Pid) == w.Began
}

func (w *Pending) cancel() error {
	if w.Unit != "" {
		return endUnit(w.Unit)
	}
	return endProcess(w)
}

func recordPath(dirs host.Dirs, name string) string { return filepath.Join(dirs.Run, "later", name) }

func readPending(path string) (*Pending, error) {
	w, err := host.ReadJSON[Pending](path)
	return &w, err
}

func removeFile(path string) error {
	if err := os.Remove(path); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// startTime returns when a process started, in ticks since the boot, or "" if there is no such process.
func startTime(pid int) string {
	text, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "stat"))
	if err != nil {
		return ""
	}
	_, after, _ := strings.Cut(string(text), ") ") // the name of a program may contain any character
	fields := strings.Fields(after)
	if len(fields) < 20 || fields[0] == "Z" {
		return ""
	}
	return fields[19] // field 22 of proc(5)
}
