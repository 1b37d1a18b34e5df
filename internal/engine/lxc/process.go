package lxc

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// monitor gives the process id of LXC's monitor of the node, or 0 if the node does not run. The pid file may be
// older than the last boot, so the process must say that it is this one.
func (c container) monitor() int {
	text, err := os.ReadFile(c.pidfile())
	if err != nil {
		return 0
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		return 0
	}
	title, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "cmdline"))
	if err != nil || !strings.Contains(string(title), c.name) {
		return 0
	}
	return pid
}

// init gives the process id, on the host, of the node's init, or 0 if the node does not run.
func (c container) init() int {
	monitor := c.monitor()
	if monitor == 0 {
		return 0
	}
	for _, pid := range children(monitor) {
		if !ending(pid) {
			return pid
		}
	}
	return 0
}

// children gives the processes that a process has started.
func children(pid int) []int {
	text, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "task", strconv.Itoa(pid), "children"))
	if err != nil {
		return nil
	}
	var all []int
	for _, word := range strings.Fields(string(text)) {
		if child, err := strconv.Atoi(word); err == nil {
			all = append(all, child)
		}
	}
	return all
}

// ending reports whether a process has been killed, even if it is still there: an init waits for all others of its node to end.
func ending(pid int) bool {
	text, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "stat"))
	if err != nil {
		return true
	}
	fields := strings.Fields(string(text[bytes.LastIndexByte(text, ')')+1:])) // from the third on: the second is in parentheses
	if len(fields) < 29 {
		return true
	}
	flags, _ := strconv.ParseUint(fields[9-3], 10, 64)
	pending, _ := strconv.ParseUint(fields[31-3], 10, 64)
	const exiting = 0x4 // PF_EXITING of linux/sched.h
	return flags&exiting != 0 || pending&(1<<(unix.SIGKILL-1)) != 0
}

func (c container) running() bool { return c.init() != 0 }

// frozen reports whether the node's processes are stopped by the freezer, or about to be.
func (c container) frozen() bool {
	if isV1("freezer") {
		text, _ := os.ReadFile(c.freezer("freezer.state"))
		return strings.HasPrefix(string(text), "FROZEN") || strings.HasPrefix(string(text), "FREEZING")
	}
	text, _ := os.ReadFile(c.freezer("cgroup.freeze"))
	return strings.HasPrefix(string(text), "1")
}
