package rehearsal

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"

	"orrery/internal/host/cgroup"
	"orrery/internal/tree"
)

// mounted is where control groups are on a machine and, as it sees it, on each host.
const mounted = "/sys/fs/cgroup"

// leaf is where, in version 2, the processes of a host are: a group that hands controllers down has
// none itself. It is called as that of systemd, of which LXC knows that it is not to make groups in
// there.
const leaf = "init.scope"

// groupOf is the control group above those of a set of hosts, in every hierarchy.
func groupOf(name string) string { return filepath.Join("orrery-hosts", name) }

// groupsOf are those of a set of hosts, or of one of them.
func groupsOf(name string, host ...string) cgroup.Group {
	return cgroup.Named(filepath.Join(append([]string{groupOf(name)}, host...)...))
}

// A hierarchy of control groups, by where it is mounted.
type hierarchy struct {
	dir   string
	v2    bool
	alone bool // it has all controllers
}

// hierarchies returns those of a machine: one of version 2, or several of version 1 and perhaps one
// of version 2 beside them.
func hierarchies(top string) []hierarchy {
	if tree.Exists(filepath.Join(top, "cgroup.controllers")) {
		return []hierarchy{{top, true, true}}
	}
	entries, _ := os.ReadDir(top)
	var all []hierarchy
	for _, e := range entries {
		dir := filepath.Join(top, e.Name())
		if e.IsDir() && tree.Exists(filepath.Join(dir, "cgroup.procs")) { // a link is another name of one
			all = append(all, hierarchy{dir: dir, v2: tree.Exists(filepath.Join(dir, "cgroup.controllers"))})
		}
	}
	return all
}

// enter moves this process into a group, which it makes if it is not there.
func enter(group string) error {
	if err := os.MkdirAll(group, 0o755); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(group, "cgroup.procs"), []byte("0"), 0) // whoever writes it
}

// A bound is a file of a group that bounds what it does to a disk, and what is written there.
type bound struct{ file, text string }

// bounds returns what bounds a group to so many bytes a second; 0: to nothing.
func bounds(top, group, device string, rate int64) []bound {
	if v1 := filepath.Join(top, "blkio", group); tree.Exists(filepath.Join(top, "blkio")) {
		text := fmt.Sprintf("%s %d", device, rate)
		return []bound{{filepath.Join(v1, "blkio.throttle.read_bps_device"), text},
			{filepath.Join(v1, "blkio.throttle.write_bps_device"), text}}
	}
	word := "max"
	if rate > 0 {
		word = strconv.FormatInt(rate, 10)
	}
	return []bound{{filepath.Join(top, group, "io.max"), fmt.Sprintf("%s rbps=%s wbps=%s", device, word, word)}}
}
