package process

// A Crew is a set of processes of this host, by process id, each with its start time, because an id
// may be reused. It can be stored.
type Crew map[int]string

// CrewOf returns the Crew of the processes with these ids.
func CrewOf(pids []int) Crew {
	c := Crew{}
	for _, pid := range pids {
		c[pid] = began(pid)
	}
	return c
}

func began(pid int) string {
	const starttime = 22 - 3 // of proc_pid_stat(5)
	if fields := Host.Stat(pid); len(fields) > starttime {
		return fields[starttime]
	}
	return ""
}

// Has reports whether a process belongs to the crew.
func (c Crew) Has(pid int) bool {
	at, ok := c[pid]
	return ok && at == began(pid)
}
