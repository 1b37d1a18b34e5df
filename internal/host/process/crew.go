package process

// A Crew is some processes of this host, by their numbers, each with the time at which it began: a
// number may be given anew. It can be written down.
type Crew map[int]string

// CrewOf returns those with these numbers.
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

// Has reports whether a process is one of them.
func (c Crew) Has(pid int) bool {
	at, ok := c[pid]
	return ok && at == began(pid)
}
