package lxc

import (
	"slices"

	"orrery/internal/engine"
	"orrery/internal/engine/nodedir"
	"orrery/internal/host/cgroup"
	"orrery/internal/host/process"
)

// processes are those of a node: LXC's monitor on the host, the node's init, which is its child,
// and all others in the node's control group.
type processes struct {
	dir  nodedir.Dir
	name string // LXC's name for the node
	ref  engine.Ref
}

// group returns the node's control group.
func (p processes) group() cgroup.Group { return cgroup.OfNode(p.ref.Site, p.ref.ID) }

func (p processes) pidfile() string { return p.dir.File("pid") }

// monitor returns the process id of the node's LXC monitor, or 0 if the node does not run. It
// checks the process itself, because the pid file may be older than the last boot.
func (p processes) monitor() int {
	pid := process.ReadPID(p.pidfile())
	if pid == 0 {
		return 0
	}
	if t, ok := process.Host.Task(pid); !ok || !isMonitor(t, p.dir.Path(), p.name) {
		return 0
	}
	return pid
}

// init returns the process id of the node's init on the host, or 0 if the node does not run.
func (p processes) init() int {
	_, init := p.monitorAndInit()
	return init
}

// monitorAndInit returns the process ids of the monitor and of the node's init, or 0 for each that does not
// run. When the init has ended, the monitor forks other children, such as post-stop hooks
// (lxc.container.conf(5)), which are in the host's PID namespace.
func (p processes) monitorAndInit() (monitor, init int) {
	if monitor = p.monitor(); monitor == 0 {
		return 0, 0
	}
	for _, pid := range process.Host.Children(monitor) {
		if process.Host.IsConfined(pid) && !process.Host.IsEnding(pid) {
			return monitor, pid
		}
	}
	return monitor, 0
}

func (p processes) running() bool { return p.init() != 0 }

// isMonitor reports whether a task is the LXC monitor of a node. The monitor says so in its title
// (lxc-start(1), setproctitle), or is lxc-start before it has set the title.
func isMonitor(t process.Task, dir, name string) bool {
	return slices.Equal(t.Args, []string{"[lxc monitor] " + dir + " " + name}) ||
		t.Program() == "lxc-start" && t.Option("--lxcpath") == dir && t.Option("--name") == name
}
