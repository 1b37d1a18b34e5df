package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// meddle runs a command through sudo and tries everything that one process can do to another, once on
// each process that descends from the command while it runs. It prints what was possible.
func meddle(args []string) error {
	command := commandOf(args)
	if err := command.Start(); err != nil {
		return err
	}
	ended := make(chan error, 1)
	go func() { ended <- command.Wait() }()
	seen := map[int]bool{}
	for {
		all := descendants(command.Process.Pid)
		if programOf(command.Process.Pid) != "sudo" {
			all = nil // what the caller runs before sudo is the caller's
		}
		for _, pid := range all {
			if seen[pid] || programOf(pid) == "sudo" { // it has the user id of its caller, who may stop and kill it
				continue
			}
			seen[pid] = true
			for what, try := range tries {
				if try(pid) == nil {
					fmt.Printf("process %d: %s\n", pid, what)
				}
			}
		}
		select {
		case err := <-ended:
			fmt.Printf("%d processes\n", len(seen))
			return err
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// programOf returns the name of the program that a process runs (proc_pid_comm(5)), or "".
func programOf(pid int) string {
	name, _ := os.ReadFile(fmt.Sprintf("/proc/%d/comm", pid))
	return strings.TrimSpace(string(name))
}

// tries are what one process can do to another.
var tries = map[string]func(pid int) error{
	"SIGSTOP": func(pid int) error { return unix.Kill(pid, unix.SIGSTOP) },
	"SIGTSTP": func(pid int) error { return unix.Kill(pid, unix.SIGTSTP) },
	"SIGKILL": func(pid int) error { return unix.Kill(pid, unix.SIGKILL) },
	"SIGTERM": func(pid int) error { return unix.Kill(pid, unix.SIGTERM) },
	"SIGSTOP by pidfd": func(pid int) error {
		fd, err := unix.PidfdOpen(pid, 0)
		if err != nil {
			return err
		}
		defer unix.Close(fd) //nolint:errcheck // nothing was written to it
		return unix.PidfdSendSignal(fd, unix.SIGSTOP, nil, 0)
	},
	"ptrace": unix.PtraceAttach,
	"limits": func(pid int) error {
		return unix.Prlimit(pid, unix.RLIMIT_CPU, &unix.Rlimit{Cur: 1, Max: 1}, nil)
	},
	"nice":       func(pid int) error { return unix.Setpriority(unix.PRIO_PROCESS, pid, 19) },
	"scheduling": func(pid int) error { return unix.SchedSetAttr(pid, &unix.SchedAttr{Policy: unix.SCHED_IDLE}, 0) },
	"processors": func(pid int) error {
		var one unix.CPUSet
		one.Set(0)
		return unix.SchedSetaffinity(pid, &one)
	},
	"timers":       write("timerslack_ns", "1000000000000000"),
	"memory":       write("mem", "x"),
	"oom":          write("oom_score_adj", "1000"),
	"descriptors":  func(pid int) error { _, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", pid)); return err },
	"group of v1":  enter("/sys/fs/cgroup/freezer/*/cgroup.procs"),
	"group of v2":  enter("/sys/fs/cgroup/unified/*/cgroup.procs"),
	"unified only": enter("/sys/fs/cgroup/*/cgroup.procs"),
}

func write(file, text string) func(int) error {
	return func(pid int) error { return os.WriteFile(fmt.Sprintf("/proc/%d/%s", pid, file), []byte(text), 0) }
}

// enter moves a process into any group in which that is possible.
func enter(groups string) func(int) error {
	return func(pid int) error {
		all, _ := filepath.Glob(groups)
		for _, procs := range all {
			if os.WriteFile(procs, []byte(strconv.Itoa(pid)), 0) == nil {
				return nil
			}
		}
		return os.ErrPermission
	}
}

// descendants returns the descendants of a process, without itself.
func descendants(of int) (all []int) {
	stats, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, path := range stats {
		text, err := os.ReadFile(path)
		_, after, ok := strings.Cut(string(text), ") ")
		fields := strings.Fields(after)
		if err != nil || !ok || len(fields) < 2 || fields[1] != strconv.Itoa(of) {
			continue
		}
		if pid, err := strconv.Atoi(filepath.Base(filepath.Dir(path))); err == nil {
			all = append(append(all, pid), descendants(pid)...)
		}
	}
	return all
}
