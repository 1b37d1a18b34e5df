package host

import (
	"fmt"
	"strconv"
)

// limits says how many nodes the kernel's limits allow.
func (m machine) limits() Facts {
	instances := m.read("proc/sys/fs/inotify/max_user_instances")
	f := Fact{"inotify", true, Info, fmt.Sprintf("%s instances and %s watches a user",
		instances, m.read("proc/sys/fs/inotify/max_user_watches")), ""}
	if n, err := strconv.Atoi(instances); err == nil && n < 1024 {
		f.Value += "; raised while nodes are up"
	}
	return Facts{f}
}
