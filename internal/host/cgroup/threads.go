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

// A thread is one that the kernel has made for a process of a group, and put beside it: KVM one for
// each machine, vhost one for each queue of a network card. Newer kernels make them threads of the
// process itself.
//
// The freezer of version 2 counts it among what has to stand still, and does not let it: a group
// with such a thread is never frozen. So threads are outside while the rest stands still. They do
// nothing then: those for whom they work do not run.
type thread struct {
	PID   int    `json:"pid"`
	Since string `json:"since"` // when it began, in ticks: the number may be another's later
}

// kernelThread is the flag of such a thread (PF_KTHREAD of linux/sched.h).
const kernelThread = 0x00200000

// threadOf reports whether a process is one of the kernel's, and returns when it began (proc_pid_stat(5)).
func threadOf(in process.Table, pid int) (since string, ok bool) {
	text, err := rawfile.ReadFile(in.File(pid, "stat"))
	if err != nil {
		return "", false
	}
	words := strings.Fields(string(text[strings.LastIndexByte(string(text), ')')+1:]))
	const flags, began = 9 - 3, 22 - 3 // fields, of which the third is the first behind the name
	if len(words) <= began {
		return "", false
	}
	n, err := strconv.ParseUint(words[flags], 10, 64)
	return words[began], err == nil && n&kernelThread != 0
}

// bystanders are the threads that have to be outside while the group stands still.
func (f Frost) bystanders() (all []thread) {
	if f.Group.at.isV1("freezer") { // it leaves them alone
		return nil
	}
	for _, pid := range f.Group.Processes() {
		if since, ok := threadOf(f.table(), pid); ok {
			all = append(all, thread{pid, since})
		}
	}
	return all
}

// expel puts threads where no limit holds and nothing stands still. One that has ended is no error.
func (f Frost) expel(all []thread) error { return f.move(all, string(f.Group.at)) }

// readmit puts the threads back that a mark tells of.
func (f Frost) readmit() error {
	text, err := rawfile.ReadFile(f.Mark)
	if errors.Is(err, fs.ErrNotExist) || len(text) == 0 {
		return nil
	}
	if err != nil {
		return err
	}
	var all []thread
	if json.Unmarshal(text, &all) != nil {
		return nil // what is cut short was written before any was moved
	}
	all = slices.DeleteFunc(all, func(t thread) bool {
		since, ok := threadOf(f.table(), t.PID)
		return !ok || since != t.Since
	})
	if err := f.move(all, f.Group.file("freezer", "")); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil // the group has gone, and they go with whom they worked for
}

func (f Frost) move(all []thread, to string) error {
	for _, t := range all {
		err := os.WriteFile(filepath.Join(to, "cgroup.procs"), []byte(strconv.Itoa(t.PID)), 0)
		if err != nil && !errors.Is(err, unix.ESRCH) {
			return err
		}
	}
	return nil
}

// table is that in which threads are looked up.
func (f Frost) table() process.Table {
	if f.Processes == "" {
		return process.Host
	}
	return f.Processes
}
