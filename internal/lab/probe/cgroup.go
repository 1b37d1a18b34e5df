package probe

import (
	"os"
	"path/filepath"
)

// A hierarchy is where cgroups are mounted (cgroups(7)). Version 1 has a tree for each controller,
// version 2 has one tree for all.
type hierarchy struct {
	account string // directory of cpuacct, or "" if not mounted
	unified string // of version 2, or "" if not mounted
}

// findHierarchy reads the mounts of the machine whose root directory is root.
func findHierarchy(root string) hierarchy {
	var h hierarchy
	text, _ := os.ReadFile(filepath.Join(root, "proc/self/mounts"))
	for len(text) > 0 {
		var l []byte
		l, text = line(text)
		_, rest := word(l)
		at, rest := word(rest)
		kind, rest := word(rest)
		options, _ := word(rest)
		switch {
		case string(kind) == "cgroup2" && h.unified == "":
			h.unified = filepath.Join(root, string(at))
		case string(kind) == "cgroup" && h.account == "" && containsItem(options, "cpuacct"):
			h.account = filepath.Join(root, string(at))
		}
	}
	return h
}

// containsItem reports whether a comma-separated list contains an item.
func containsItem(list []byte, item string) bool {
	for len(list) > 0 {
		end := 0
		for end < len(list) && list[end] != ',' {
			end++
		}
		if string(list[:end]) == item {
			return true
		}
		list = list[min(end+1, len(list)):]
	}
	return false
}

// cpuTime is processor time in nanoseconds.
type cpuTime struct{ user, system uint64 }

// A cgroup is a control group whose user and system time is read. Its path is relative to the root
// of the hierarchies. Version 1 counts the time in cpuacct, version 2 in cpu.stat, even if the
// controller cpu is off.
type cgroup struct {
	name        string
	total, user *file // of cpuacct
	stat        *file // of version 2
	before      cpuTime
	counted     bool // before is valid
}

func newCgroup(h hierarchy, path string) *cgroup {
	c := &cgroup{name: path}
	if h.account != "" {
		c.total = newFile(filepath.Join(h.account, path, "cpuacct.usage"))
		c.user = newFile(filepath.Join(h.account, path, "cpuacct.usage_user"))
	}
	if h.unified != "" {
		c.stat = newFile(filepath.Join(h.unified, path, "cpu.stat"))
	}
	return c
}

// read returns the time spent so far, from the tree that has the cgroup, or from version 1 if both
// have it.
func (c *cgroup) read() (now cpuTime, ok bool) {
	if c.total != nil {
		if text := c.total.read(); text != nil {
			total := number(text)
			now.user = min(total, number(c.user.read()))
			now.system = total - now.user
			return now, true
		}
	}
	if c.stat == nil {
		return now, false
	}
	text := c.stat.read()
	found := false
	for len(text) > 0 {
		var l []byte
		l, text = line(text)
		if rest, matched := after(l, "user_usec "); matched {
			now.user, found = number(rest)*1000, true
		} else if rest, matched := after(l, "system_usec "); matched {
			now.system, found = number(rest)*1000, true
		}
	}
	return now, found
}

// sample adds the time spent since the previous reading to a second.
func (c *cgroup) sample(s *Second) {
	now, ok := c.read()
	if ok && c.counted {
		used := Usage{nanoseconds(increase(now.user, c.before.user)), nanoseconds(increase(now.system, c.before.system))}
		if used != (Usage{}) {
			if s.Cgroups == nil {
				s.Cgroups = map[string]Usage{}
			}
			s.Cgroups[c.name] = used
		}
	}
	c.before, c.counted = now, ok
}

// nanoseconds converts nanoseconds to seconds, rounded down to microseconds to keep the output
// short.
func nanoseconds(n uint64) float64 { return float64(n/1000) / 1e6 }

func (c *cgroup) close() {
	for _, f := range []*file{c.total, c.user, c.stat} {
		if f != nil {
			f.close()
		}
	}
}
