package process

// A Set is a set of processes of this host, by process id, each with its start time, because an id
// may be reused. It can be stored.
type Set map[int]string

// NewSet returns the Set of the processes with these ids.
func NewSet(pids []int) Set {
	c := Set{}
	for _, pid := range pids {
		c[pid] = startTime(pid)
	}
	return c
}

func startTime(pid int) string {
	const starttime = 22 - 3 // of proc_pid_stat(5)
	if fields := Host.Stat(pid); len(fields) > starttime {
		return fields[starttime]
	}
	return ""
}

// Has reports whether a process belongs to the set.
func (c Set) Has(pid int) bool {
	at, ok := c[pid]
	return ok && at == startTime(pid)
}
