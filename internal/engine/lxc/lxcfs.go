package lxc

import (
	"os"
	"path/filepath"
)

// lxcfsDir is where lxcfs is mounted (lxcfs(1)). It is a variable, so that tests can change it.
var lxcfsDir = "/var/lib/lxcfs"

// lxcfsViews are the parts of lxcfs that nodes see instead of the kernel's: the limits and the use of
// their own control group.
var lxcfsViews = []string{"proc/cpuinfo", "proc/diskstats", "proc/loadavg", "proc/meminfo", "proc/stat", "proc/swaps",
	"proc/uptime", "sys/devices/system/cpu"}

// lxcfsMounts returns values of lxc.mount.entry for the views that lxcfs provides on this host. It
// returns none if lxcfs does not run or has ended: its files then return errors.
func lxcfsMounts() (entries []string) {
	for _, view := range lxcfsViews {
		source := filepath.Join(lxcfsDir, view)
		if _, err := os.Stat(source); err == nil {
			entries = append(entries, source+" "+view+" none bind,optional 0 0")
		}
	}
	return entries
}
