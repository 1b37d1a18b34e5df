package lxc

import (
	"slices"

	"orrery/internal/host/process"
)

// monitor returns the process id of LXC's monitor of the node, or 0 if the node does not run. The pid file may be
// older than the last boot, so the process must be this one.
func (c container) monitor() int {
	pid := process.ReadPID(c.pidfile())
	if pid == 0 {
		return 0
	}
	if t, ok := process.Host.Task(pid); !ok || !monitors(t, c.Path(), c.name) {
		return 0
	}
	return pid
}

// init returns the process id, on the host, of the node's init, or 0 if the node does not run.
func (c container) init() int {
	monitor := c.monitor()
	if monitor == 0 {
		return 0
	}
	for _, pid := range process.Host.Children(monitor) {
		if !process.Host.Ending(pid) {
			return pid
		}
	}
	return 0
}

func (c container) running() bool { return c.init() != 0 }

// monitors reports whether a task is LXC's monitor of a node: it says so (lxc-start(1), setproctitle), or is about to.
func monitors(t process.Task, dir, name string) bool {
	return slices.Equal(t.Args, []string{"[lxc monitor] " + dir + " " + name}) ||
		t.Program() == "lxc-start" && t.Option("--lxcpath") == dir && t.Option("--name") == name
}
