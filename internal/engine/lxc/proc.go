package lxc

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// A procfs is a table of processes (proc(5)): that of this host, or one that a test makes up.
type procfs string

const proc procfs = "/proc"

func (p procfs) file(pid int, name string) string {
	return filepath.Join(string(p), strconv.Itoa(pid), name)
}

// A task is a process, in so far as its word is taken for what it is: it runs as root of the host, in the same namespaces of users and
// process ids as we. All others may call themselves whatever they like: users of the host, and what runs in nodes, privileged or not.
type task struct {
	pid, parent, group int
	args               []string
}

// tasks gives all processes of the host's root.
func (p procfs) tasks() ([]task, error) {
	entries, err := os.ReadDir(string(p))
	if err != nil {
		return nil, err
	}
	var all []task
	for _, e := range entries {
		if pid, err := strconv.Atoi(e.Name()); err == nil {
			if t, ok := p.task(pid); ok {
				all = append(all, t)
			}
		}
	}
	return all, nil
}

// task gives a process if it is one of the host's root.
func (p procfs) task(pid int) (task, bool) {
	text, err := os.ReadFile(p.file(pid, "cmdline"))
	if err != nil || len(text) == 0 || !p.trusted(pid) {
		return task{}, false
	}
	fields := p.stat(pid)
	if len(fields) < 5 {
		return task{}, false
	}
	parent, _ := strconv.Atoi(fields[4-3])
	group, _ := strconv.Atoi(fields[5-3])
	return task{pid, parent, group, strings.Split(strings.TrimRight(string(text), "\x00"), "\x00")}, true
}

// trusted reports whether a process runs as root of the host, and in no namespace of a node.
func (p procfs) trusted(pid int) bool {
	for _, space := range []string{"ns/user", "ns/pid"} {
		ours, err := os.Readlink(filepath.Join(string(p), "self", space))
		if err != nil {
			return false
		}
		if its, err := os.Readlink(p.file(pid, space)); err != nil || its != ours {
			return false
		}
	}
	status, err := os.ReadFile(p.file(pid, "status"))
	if err != nil {
		return false
	}
	for line := range strings.Lines(string(status)) {
		if ids, ok := strings.CutPrefix(line, "Uid:"); ok {
			return slices.Equal(strings.Fields(ids), []string{"0", "0", "0", "0"})
		}
	}
	return false
}

// stat gives what proc_pid_stat(5) says of a process, from its third field on: the second is in parentheses, with whatever in them.
func (p procfs) stat(pid int) []string {
	text, err := os.ReadFile(p.file(pid, "stat"))
	if err != nil {
		return nil
	}
	return strings.Fields(string(text[bytes.LastIndexByte(text, ')')+1:]))
}

// ending reports whether a process has been killed, even if it is still there: an init waits for all others of its node to end.
func (p procfs) ending(pid int) bool {
	fields := p.stat(pid)
	if len(fields) < 29 {
		return true
	}
	flags, _ := strconv.ParseUint(fields[9-3], 10, 64)
	pending, _ := strconv.ParseUint(fields[31-3], 10, 64)
	const exiting = 0x4 // PF_EXITING of linux/sched.h
	return flags&exiting != 0 || pending&(1<<(unix.SIGKILL-1)) != 0
}

// children gives the processes that a process has started.
func (p procfs) children(pid int) []int {
	text, err := os.ReadFile(p.file(pid, "task/"+strconv.Itoa(pid)+"/children"))
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

// monitors reports whether a task is LXC's monitor of a node: it says so (lxc-start(1), setproctitle), or is about to.
func (t task) monitors(dir, name string) bool {
	return slices.Equal(t.args, []string{"[lxc monitor] " + dir + " " + name}) ||
		t.program() == "lxc-start" && t.option("--lxcpath") == dir && t.option("--name") == name
}

// program gives the name of the file that a task has been started from, as it says.
func (t task) program() string { return filepath.Base(t.args[0]) }

// option gives the value of an option of a program of LXC's as we start it; "" if it has none.
func (t task) option(name string) string {
	options := t.args
	if end := slices.Index(options, "--"); end >= 0 { // the rest is a command's own
		options = options[:end]
	}
	if i := slices.Index(options, name); i >= 0 && i+1 < len(options) {
		return options[i+1]
	}
	return ""
}
