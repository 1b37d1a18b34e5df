package lxc

import (
	"os"
	"strconv"
	"strings"
)

// monitor gives the process id of LXC's monitor of the node, or 0 if the node does not run. The pid file may be
// older than the last boot, so the process must be this one.
func (c container) monitor() int {
	text, err := os.ReadFile(c.pidfile())
	if err != nil {
		return 0
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		return 0
	}
	if t, ok := proc.task(pid); !ok || !t.monitors(c.Path(), c.name) {
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
	for _, pid := range proc.children(monitor) {
		if !proc.ending(pid) {
			return pid
		}
	}
	return 0
}

func (c container) running() bool { return c.init() != 0 }
