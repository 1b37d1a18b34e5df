package rehearsal

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"

	"orrery/internal/host/cgroup"
	"orrery/internal/tree"
)

// mounted is the mount point of control groups on a machine and on each of its hosts.
const mounted = "/sys/fs/cgroup"

// leaf is the group that contains the processes of a host in version 2: a group that delegates
// controllers cannot contain processes. It has the name of systemd's group, in which LXC creates no
// groups.
const leaf = "init.scope"

// groupOf returns the parent of the control groups of a set of hosts, in every hierarchy.
func groupOf(name string) string { return filepath.Join("orrery-hosts", name) }

// groupsOf returns the control group of a set of hosts, or that of one of them.
func groupsOf(name string, host ...string) cgroup.Group {
	return cgroup.Named(filepath.Join(append([]string{groupOf(name)}, host...)...))
}

// A hierarchy is a hierarchy of control groups, by its mount point.
type hierarchy struct {
	dir   string
	v2    bool
	alone bool // it is the only one, with all controllers
}

// hierarchies returns the hierarchies of a machine: one of version 2, or several of version 1 and
// perhaps one of version 2 beside them.
func hierarchies(top string) []hierarchy {
	if tree.Exists(filepath.Join(top, "cgroup.controllers")) {
		return []hierarchy{{top, true, true}}
	}
	entries, _ := os.ReadDir(top)
	var all []hierarchy
	for _, e := range entries {
		dir := filepath.Join(top, e.Name())
		if e.IsDir() && tree.Exists(filepath.Join(dir, "cgroup.procs")) { // a link is another name of a hierarchy
			all = append(all, hierarchy{dir: dir, v2: tree.Exists(filepath.Join(dir, "cgroup.controllers"))})
		}
	}
	return all
}

// enter moves this process into a group, and creates the group if it does not exist.
func enter(group string) error {
	if err := os.MkdirAll(group, 0o755); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(group, "cgroup.procs"), []byte("0"), 0) // 0: this process
}

// A diskLimit is a file that limits a group's disk bandwidth, with its content.
type diskLimit struct{ file, text string }

// diskLimits returns the limits of a group's disk bandwidth in bytes per second. A rate of 0 removes
// the limits.
func diskLimits(top, group, device string, rate int64) []diskLimit {
	if v1 := filepath.Join(top, "blkio", group); tree.Exists(filepath.Join(top, "blkio")) {
		text := fmt.Sprintf("%s %d", device, rate)
		return []diskLimit{{filepath.Join(v1, "blkio.throttle.read_bps_device"), text},
			{filepath.Join(v1, "blkio.throttle.write_bps_device"), text}}
	}
	word := "max"
	if rate > 0 {
		word = strconv.FormatInt(rate, 10)
	}
	return []diskLimit{{filepath.Join(top, group, "io.max"), fmt.Sprintf("%s rbps=%s wbps=%s", device, word, word)}}
}
