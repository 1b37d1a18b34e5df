package doctor

import (
	"fmt"
	"strconv"
	"strings"

	"orrery/internal/host"
	"orrery/internal/site"
)

// limits checks how many nodes the kernel's limits allow.
func (m machine) limits() Facts {
	instances := m.read("proc/sys/fs/inotify/max_user_instances")
	f := Fact{"inotify", true, Info, fmt.Sprintf("%s instances and %s watches per user",
		instances, m.read("proc/sys/fs/inotify/max_user_watches")), ""}
	if n, err := strconv.Atoi(instances); err == nil && n < 1024 {
		f.Value += "; raised while nodes are up"
	}
	return Facts{f, m.neighbourTables(), m.processIDs(), realtimePriority()}
}

// neighbourTables checks how full the kernel's neighbour tables are. There is one table for all network
// namespaces. So a node that calls many addresses on its own interfaces fills it for the host and
// for all nodes, and no rule can prevent that.
func (m machine) neighbourTables() Fact {
	f := Fact{Name: "neighbours", OK: true, Level: Info}
	var values []string
	for _, of := range []struct{ family, cache, key string }{{"IPv4", "arp_cache", "ipv4"},
		{"IPv6", "ndisc_cache", "ipv6"}} {
		key := "net." + of.key + ".neigh.default.gc_thresh3"
		entries, ok := tableEntries(m.read("proc/net/stat/" + of.cache))
		bound, err := strconv.Atoi(m.read("proc/sys/" + strings.ReplaceAll(key, ".", "/")))
		if !ok || err != nil {
			continue
		}
		values = append(values, fmt.Sprintf("%d of %d of %s", entries, bound, of.family))
		if 4*entries >= 3*bound {
			f.OK, f.Level = false, Recommended
			f.Fix = "when the table is full, the host and its nodes cannot reach addresses that are not in it: " +
				"find a node that contacts many addresses (ip neigh), or raise " + key
		}
	}
	if f.Value = strings.Join(values, ", "); f.Value == "" {
		f.Value = "this kernel does not count them"
	}
	return f
}

// tableEntries returns how many entries a table of the kernel has: the first number of its statistics,
// after the headings.
func tableEntries(statistics string) (int, bool) {
	_, row, _ := strings.Cut(statistics, "\n")
	first, _, _ := strings.Cut(row, " ")
	n, err := strconv.ParseUint(first, 16, 32)
	return int(n), err == nil
}

// processIDs checks how many nodes can have the default number of processes.
func (m machine) processIDs() Fact {
	const name, most = "process ids", 1 << 22 // PID_MAX_LIMIT of linux/threads.h
	text := m.read("proc/sys/kernel/pid_max")
	n, err := strconv.Atoi(text)
	if err != nil {
		return Fact{name, false, Info, "kernel.pid_max is missing", "mount proc on /proc"}
	}
	f := Fact{name, true, Info, fmt.Sprintf("%d, enough for %d nodes of %d processes", n, n/site.DefaultPids,
		site.DefaultPids), ""}
	if n < most {
		f.Value += "; raised while nodes are up"
	}
	return f
}

// realtimePriority checks whether a switch can move the links of nodes at once when all processors are
// busy.
func realtimePriority() Fact {
	const name = "real-time priority"
	if why := host.WithRealtimePriority(func() {}); why != nil {
		return Fact{name, false, Info, why.Error(), "when all processors are busy, a switch takes longer; " +
			"with cgroup v1, set cpu.rt_runtime_us of orrery's control group, or run orrery in another"}
	}
	return Fact{name, true, Info, "usable: a switch does not wait for busy processors", ""}
}
