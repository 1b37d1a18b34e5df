// Package process identifies processes of this host reliably.
//
// A node can give its own processes any name. The package finds and ends processes that run for a
// node, such as LXC's monitor or a virtual machine, after the command that started them has ended.
package process

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"

	"orrery/internal/tree/rawfile"
)

// A Table is a process table (proc(5)): that of this host, or a test's directory.
type Table string

// Host is the process table of this host.
const Host Table = "/proc"

// File returns the path of a file about a process.
func (t Table) File(pid int, name string) string {
	return filepath.Join(string(t), strconv.Itoa(pid), name)
}

// A Task is a process whose command line can be trusted. It runs as root of the host, or as a user
// that no other program runs as. Its user and PID namespaces are those of this process. All other
// processes may forge their names: those of the host's users, and those in nodes, privileged or
// not.
type Task struct {
	PID, Parent, Group int
	Args               []string
}

// Tasks returns all processes of the host's root.
func (t Table) Tasks() ([]Task, error) {
	entries, err := os.ReadDir(string(t))
	if err != nil {
		return nil, err
	}
	var all []Task
	for _, e := range entries {
		if pid, err := strconv.Atoi(e.Name()); err == nil {
			if task, ok := t.Task(pid); ok {
				all = append(all, task)
			}
		}
	}
	return all, nil
}

// Task returns a process if it is one of the host's root.
func (t Table) Task(pid int) (Task, bool) { return t.TaskOf(pid, 0) }

// TaskOf returns a process if it runs as the given user of the host.
func (t Table) TaskOf(pid, user int) (Task, bool) {
	text, err := rawfile.ReadFile(t.File(pid, "cmdline"))
	if err != nil || len(text) == 0 || !t.runsAs(pid, user) {
		return Task{}, false
	}
	fields := t.Stat(pid)
	if len(fields) < 5 {
		return Task{}, false
	}
	parent, _ := strconv.Atoi(fields[4-3])
	group, _ := strconv.Atoi(fields[5-3])
	return Task{pid, parent, group, strings.Split(strings.TrimRight(string(text), "\x00"), "\x00")}, true
}

// ReadPID returns the process id in a file of Orrery's, or 0 if there is none. The file may be
// older than the last boot, so the caller must check which process has that id now.
func ReadPID(file string) int {
	text, err := rawfile.ReadFile(file)
	if err != nil {
		return 0
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		return 0
	}
	return pid
}

// runsAs reports whether a process runs as the given user of the host, and not in a node's
// namespaces.
func (t Table) runsAs(pid, user int) bool {
	for _, space := range []string{"ns/user", "ns/pid"} {
		if ours, err := t.sharesNamespace(space, pid); err != nil || !ours {
			return false
		}
	}
	status, err := rawfile.ReadFile(t.File(pid, "status"))
	if err != nil {
		return false
	}
	id := strconv.Itoa(user)
	for line := range strings.Lines(string(status)) {
		if ids, ok := strings.CutPrefix(line, "Uid:"); ok {
			return slices.Equal(strings.Fields(ids), []string{id, id, id, id})
		}
	}
	return false
}

// Stat returns the fields of proc_pid_stat(5) of a process, from the third on. The second one is in
// parentheses and may contain any character.
func (t Table) Stat(pid int) []string {
	text, err := rawfile.ReadFile(t.File(pid, "stat"))
	if err != nil {
		return nil
	}
	return strings.Fields(string(text[bytes.LastIndexByte(text, ')')+1:]))
}

// IsEnding reports whether a process has been killed, even if it still exists. An init waits until
// all other processes of its node have ended.
func (t Table) IsEnding(pid int) bool {
	fields := t.Stat(pid)
	if len(fields) < 29 {
		return true
	}
	flags, _ := strconv.ParseUint(fields[9-3], 10, 64)
	pending, _ := strconv.ParseUint(fields[31-3], 10, 64)
	const exiting = 0x4 // PF_EXITING of linux/sched.h
	return flags&exiting != 0 || pending&(1<<(unix.SIGKILL-1)) != 0
}

// ownSpaces holds this process's namespaces by the path of their file in a table. They never change.
var ownSpaces sync.Map

// sharesNamespace reports whether a process is in the same namespace ("ns/user", "ns/pid") as this process.
func (t Table) sharesNamespace(space string, pid int) (bool, error) {
	file := filepath.Join(string(t), "self", space)
	ours, known := ownSpaces.Load(file)
	if !known {
		read, err := os.Readlink(file)
		if err != nil {
			return false, err
		}
		ours = read
		ownSpaces.Store(file, ours)
	}
	its, err := os.Readlink(t.File(pid, space))
	return its == ours, err
}

// IsConfined reports whether a process runs and is in another PID namespace than this process.
func (t Table) IsConfined(pid int) bool {
	ours, err := t.sharesNamespace("ns/pid", pid)
	return err == nil && !ours
}

// Children returns the children of a process.
func (t Table) Children(pid int) []int {
	text, err := rawfile.ReadFile(t.File(pid, "task/"+strconv.Itoa(pid)+"/children"))
	if err != nil {
		return nil
	}
	var all []int
	for word := range strings.FieldsSeq(string(text)) {
		if child, err := strconv.Atoi(word); err == nil {
			all = append(all, child)
		}
	}
	return all
}

// Program returns the file name of the task's program, from its command line.
func (t Task) Program() string { return filepath.Base(t.Args[0]) }

// Option returns the value of an option that is an argument of its own, or "" if the option is
// missing.
func (t Task) Option(name string) string {
	options := t.Args
	if end := slices.Index(options, "--"); end >= 0 { // the rest belongs to another command
		options = options[:end]
	}
	if i := slices.Index(options, name); i >= 0 && i+1 < len(options) {
		return options[i+1]
	}
	return ""
}

// ShellStatus returns the exit status of a process as a shell shows it: 128 plus the signal number
// if a signal has killed it.
func ShellStatus(state *os.ProcessState) int {
	if how, ok := state.Sys().(syscall.WaitStatus); ok && how.Signaled() {
		return 128 + int(how.Signal())
	}
	return state.ExitCode()
}
