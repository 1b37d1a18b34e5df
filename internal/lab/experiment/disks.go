package experiment

import (
	"fmt"
	"slices"
	"strings"

	"orrery/internal/site"
	"orrery/internal/strict"
)

// The disks that tests use in settings that are virtual machines. Without a disk, tests use a
// directory of the host.
const (
	File      = "file"      // a raw file on the host (INFN's word)
	Raw       = "raw"       // the same (Pilsen's word)
	QCow2     = "qcow2"     // a file in that format
	Partition = "partition" // a device of the host, such as a logical volume
)

// uncached is the default cache mode of a setting's disk. Other modes measure the memory of the
// host.
const uncached = "none"

// Disks lists all kinds of disk.
var Disks = []string{File, Raw, QCow2, Partition}

// disk checks a setting's keys about its disk.
func (r *reading) disk(at *strict.Node, s *Setting) {
	if r.bad[at.At("disk")] {
		return
	}
	_, noEngine := missingEngines()[s.Engine]
	switch {
	case s.Disk == "":
		for _, key := range []string{"devices", "cache", "aio"} {
			if where, written := at.Keys[key]; written {
				r.addMistake(where, mistake("%s applies to a disk, and the setting has none", key).
					Try("write disk = %q, or remove it",
						File))
			}
		}
	case !slices.Contains(Disks, s.Disk):
		r.addMistake(at.At("disk"), withSuggestion(mistake("disk %q is unknown", s.Disk), s.Disk, Disks))
	case !s.Virtual() && !noEngine:
		r.addMistake(at.At("disk"), mistake("disk = %q applies to virtual machines",
			s.Disk).Try("write engine = %q, or remove it",
			site.KVM))
	default:
		r.devices(at, s)
		if s.Virtual() && s.Cache == "" {
			s.Cache = uncached
		}
	}
}

// CacheReason returns the reason why the host caches the setting's files in memory, regardless of how
// they are opened, or "" if it does not.
func (s Setting) CacheReason() string {
	switch {
	case !s.Virtual():
		return ""
	case s.Disk == "":
		return "its files are on the host and shared by virtiofs or 9p"
	case s.Cache == uncached || s.Cache == "directsync":
		return ""
	}
	return "cache = " + s.Cache
}

// devices checks the partitions of a setting. Each node needs its own. Without any partition the
// setting is marked as missing, so that the table keeps the paper's row.
func (r *reading) devices(at *strict.Node, s *Setting) {
	where, written := at.Keys["devices"]
	switch {
	case written && s.Disk != Partition:
		r.addMistake(where, mistake("disk = %q has no devices", s.Disk).Try("write disk = %q, or remove them",
			Partition))
		return
	case s.Disk == Partition && len(s.Devices) == 0 && s.Missing == "" && !r.bad[where]:
		s.Missing = `no device is named; each node uses one and overwrites it: devices = ["/dev/vg/lab1"]`
	}
	for i, device := range s.Devices {
		item := where
		if i < len(where.Items) {
			item = where.Items[i]
		}
		if !strings.HasPrefix(device, "/dev/") || strings.Contains(device, "/../") {
			r.addMistake(item, mistake("%q is not a device", device).Try("such as /dev/vg/lab1"))
		} else if slices.Contains(s.Devices[:i], device) ||
			slices.ContainsFunc(r.experiment.Settings, func(o Setting) bool { return slices.Contains(o.Devices, device) }) {
			r.addMistake(item, mistake("%s is named twice", device).Try("name a different device for each node"))
		}
	}
}

// MaxNodes returns the maximum number of concurrent nodes of a setting.
func (s Setting) MaxNodes() int {
	switch {
	case s.Network == Exclusive:
		return 1
	case s.Disk == Partition:
		return len(s.Devices)
	}
	return maxCopies
}

// maxNodesReason returns the reason why a setting cannot have more concurrent nodes.
func (s Setting) maxNodesReason() string {
	if s.Network == Exclusive {
		return "an interface can be in only one node"
	}
	return fmt.Sprintf("each node needs its own device, and devices has %d", len(s.Devices))
}

// guestVM returns the guest's virtual hardware, as far as the rules for sites check it.
func (s Setting) guestVM() site.VM {
	vm := site.VM{CPU: s.CPU}
	if s.Disk != "" && s.Virtual() {
		vm.Disk, vm.Size, vm.Cache, vm.AIO = site.RawFile, 1<<30, s.Cache, s.AIO
	}
	return vm
}
