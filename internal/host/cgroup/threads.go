package cgroup

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"orrery/internal/host/process"
	"orrery/internal/tree/rawfile"
)

// A thread is a thread that the kernel has created for a process of a group, as a process of its
// own in the same group. KVM creates one for each machine, and vhost one for each queue of a
// network card. Newer kernels make them threads of the process itself.
//
// The freezer of version 2 counts such a thread as a process to freeze, but cannot freeze it. So a
// group with such a thread never becomes frozen. That is why these threads are moved out of the
// group while it is frozen. They have nothing to do then, because the processes that they work for
// do not run.
type thread struct {
	PID   int    `json:"pid"`
	Since string `json:"since"` // start time in ticks, because the PID may be reused
}

// kernelThreadFlag is the flag of a kernel thread (PF_KTHREAD of linux/sched.h).
const kernelThreadFlag = 0x00200000

// kernelThreadStart reports whether a process is a kernel thread, and returns its start time
// (proc_pid_stat(5)).
func kernelThreadStart(in process.Table, pid int) (since string, ok bool) {
	text, err := rawfile.ReadFile(in.File(pid, "stat"))
	if err != nil {
		return "", false
	}
	words := strings.Fields(string(text[strings.LastIndexByte(string(text), ')')+1:]))
	const flags, began = 9 - 3, 22 - 3 // field numbers; words[0] is the third field, after the name
	if len(words) <= began {
		return "", false
	}
	n, err := strconv.ParseUint(words[flags], 10, 64)
	return words[began], err == nil && n&kernelThreadFlag != 0
}

// kernelThreads returns the threads that must leave the group before it is frozen.
func (f Freezer) kernelThreads() (all []thread) {
	if f.Group.at.isV1("freezer") { // the freezer of version 1 ignores them
		return nil
	}
	for _, pid := range f.Group.Processes() {
		if since, ok := kernelThreadStart(f.table(), pid); ok {
			all = append(all, thread{pid, since})
		}
	}
	return all
}

// moveOut moves threads to the root group, where no limits apply and nothing freezes. A thread that
// has ended is not an error.
func (f Freezer) moveOut(all []thread) error { return f.move(all, string(f.Group.at)) }

// moveBack moves the threads in the mark back into the group.
func (f Freezer) moveBack() error {
	text, err := rawfile.ReadFile(f.Mark)
	if errors.Is(err, fs.ErrNotExist) || len(text) == 0 {
		return nil
	}
	if err != nil {
		return err
	}
	var all []thread
	if json.Unmarshal(text, &all) != nil {
		return nil // a truncated mark was written before any thread was moved
	}
	all = slices.DeleteFunc(all, func(t thread) bool {
		since, ok := kernelThreadStart(f.table(), t.PID)
		return !ok || since != t.Since
	})
	if err := f.move(all, f.Group.file("freezer", "")); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil // the group has gone, and the threads end with their processes
}

func (f Freezer) move(all []thread, to string) error {
	for _, t := range all {
		err := os.WriteFile(filepath.Join(to, "cgroup.procs"), []byte(strconv.Itoa(t.PID)), 0)
		if err != nil && !errors.Is(err, unix.ESRCH) {
			return err
		}
	}
	return nil
}

// table returns the process table in which threads are looked up.
func (f Freezer) table() process.Table {
	if f.Processes == "" {
		return process.Host
	}
	return f.Processes
}
