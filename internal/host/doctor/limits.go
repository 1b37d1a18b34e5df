package doctor

import (
	"fmt"
	"strconv"

	"orrery/internal/host"
	"orrery/internal/site"
)

// limits says how many nodes the kernel's limits allow.
func (m machine) limits() Facts {
	instances := m.read("proc/sys/fs/inotify/max_user_instances")
	f := Fact{"inotify", true, Info, fmt.Sprintf("%s instances and %s watches a user",
		instances, m.read("proc/sys/fs/inotify/max_user_watches")), ""}
	if n, err := strconv.Atoi(instances); err == nil && n < 1024 {
		f.Value += "; raised while nodes are up"
	}
	return Facts{f, m.processIDs(), m.urgency()}
}

// processIDs says how many nodes can have as many processes as a node has by default.
func (m machine) processIDs() Fact {
	const name, most = "process ids", 1 << 22 // PID_MAX_LIMIT of linux/threads.h
	text := m.read("proc/sys/kernel/pid_max")
	n, err := strconv.Atoi(text)
	if err != nil {
		return Fact{name, false, Info, "kernel.pid_max is not there", "mount proc on /proc"}
	}
	f := Fact{name, true, Info, fmt.Sprintf("%d, enough for %d nodes of %d processes", n, n/site.DefaultPids, site.DefaultPids), ""}
	if n < most {
		f.Value += "; raised while nodes are up"
	}
	return f
}

// urgency says whether a switch can move the links of nodes at once when all processors are busy.
func (m machine) urgency() Fact {
	const name = "real-time priority"
	if why := host.Urgently(func() {}); why != nil {
		return Fact{name, false, Info, why.Error(), "on a host whose processors are all busy a switch takes longer; " +
			"with cgroup v1, give the control group that orrery runs in some of cpu.rt_runtime_us, or run it from another"}
	}
	return Fact{name, true, Info, "usable: a switch does not wait for busy processors", ""}
}
