package kvm

import (
	"orrery/internal/engine/cgroup"
	"orrery/internal/engine/process"
)

// A crew is the processes of a machine, by their numbers, each with the time at which it began: a number may be given anew.
type crew map[int]string

// crewOf gives those that are in a group now.
func crewOf(g cgroup.Group) crew {
	c := crew{}
	for _, pid := range g.Processes() {
		c[pid] = began(pid)
	}
	return c
}

func began(pid int) string {
	const starttime = 22 - 3 // of proc_pid_stat(5)
	if fields := process.Host.Stat(pid); len(fields) > starttime {
		return fields[starttime]
	}
	return ""
}

// has reports whether a process is one of them.
func (c crew) has(pid int) bool {
	at, ok := c[pid]
	return ok && at == began(pid)
}
