// Package process identifies processes of this host reliably: a node can give its own processes any
// name. It finds and ends those that run for a node, such as LXC's monitor or a virtual machine,
// after the command that started them has ended.
package process

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"orrery/internal/tree/rawfile"
)

// A Table is a table of processes (proc(5)): that of this host, or one that a test makes up.
type Table string

// Host is that of this host.
const Host Table = "/proc"

// File is a file that tells of a process.
func (t Table) File(pid int, name string) string {
	return filepath.Join(string(t), strconv.Itoa(pid), name)
}

// A Task is a process, in so far as its word is taken for what it is: it runs as root of the host,
// or as a user that nobody else runs as, in the same namespaces of users and process ids as we. All
// others may call themselves whatever they like: users of the host, and what runs in nodes,
// privileged or not.
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

// TaskOf returns a process if it is one of a user of the host.
func (t Table) TaskOf(pid, user int) (Task, bool) {
	text, err := rawfile.ReadFile(t.File(pid, "cmdline"))
	if err != nil || len(text) == 0 || !t.isOf(pid, user) {
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

// ReadPID returns the number in a file of ours; 0 if there is none. It may be older than the last
// boot: whose it is now, the task must tell.
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

// isOf reports whether a process runs as a user of the host, and in no namespace of a node.
func (t Table) isOf(pid, user int) bool {
	for _, space := range []string{"ns/user", "ns/pid"} {
		ours, err := os.Readlink(filepath.Join(string(t), "self", space))
		if err != nil {
			return false
		}
		if its, err := os.Readlink(t.File(pid, space)); err != nil || its != ours {
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

// Stat returns what proc_pid_stat(5) says of a process, from its third field on: the second is in
// parentheses, with whatever in them.
func (t Table) Stat(pid int) []string {
	text, err := rawfile.ReadFile(t.File(pid, "stat"))
	if err != nil {
		return nil
	}
	return strings.Fields(string(text[bytes.LastIndexByte(text, ')')+1:]))
}

// Ending reports whether a process has been killed, even if it is still there: an init waits for
// all others of its node to end.
func (t Table) Ending(pid int) bool {
	fields := t.Stat(pid)
	if len(fields) < 29 {
		return true
	}
	flags, _ := strconv.ParseUint(fields[9-3], 10, 64)
	pending, _ := strconv.ParseUint(fields[31-3], 10, 64)
	const exiting = 0x4 // PF_EXITING of linux/sched.h
	return flags&exiting != 0 || pending&(1<<(unix.SIGKILL-1)) != 0
}

// Children returns the processes that a process has started.
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

// Program returns the name of the file that a task has been started from, as it says.
func (t Task) Program() string { return filepath.Base(t.Args[0]) }

// Option returns the value of an option that is a word of its own; "" if it has none.
func (t Task) Option(name string) string {
	options := t.Args
	if end := slices.Index(options, "--"); end >= 0 { // the rest is a command's own
		options = options[:end]
	}
	if i := slices.Index(options, name); i >= 0 && i+1 < len(options) {
		return options[i+1]
	}
	return ""
}

// ShellStatus returns the exit status of a process as shells have it: 128 and the number of the
// signal, if one has ended it.
func ShellStatus(state *os.ProcessState) int {
	if how, ok := state.Sys().(syscall.WaitStatus); ok && how.Signaled() {
		return 128 + int(how.Signal())
	}
	return state.ExitCode()
}
