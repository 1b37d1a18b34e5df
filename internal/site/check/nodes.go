package check

import (
	"fmt"
	"slices"

	"orrery/internal/site"
	"orrery/internal/site/diskio"
)

// Minimum resources with which a node can start.
const (
	minMemory = 16 << 20
	minPids   = 8
	minCpus   = 0.01 // 1 ms per period of 100 ms, the kernel's minimum
)

// checkNodes checks each node separately, except for its name, id and addresses.
func checkNodes(ix *index, found *findings) {
	taken := holders{}
	images := toSet(names(ix.Images, func(i *site.Image) string { return i.Name }))
	hosts := toSet(names(ix.Hosts, func(h *site.Host) string { return h.Name }))
	for n := range each(ix.Nodes) {
		switch {
		case n.Image == "" && len(ix.Images) == 0:
			found.report(atNode(n, "image"), `declare one: image.debian.suite = "bookworm"`, "the site has no image")
		case n.Image == "":
			found.report(atNode(n, "image"), "set image = … for the node or in [defaults]",
				"node %s has no image; the site has %d images", n.Name, len(images))
		case !images[n.Image]:
			checkImageName(ix, found, atNode(n, "image"), n.Image)
		}
		if n.Host != "" && !hosts[n.Host] {
			found.reportUnknown(atNode(n, "host"), "host", n.Host, names(ix.Hosts, func(h *site.Host) string { return h.Name }))
		}
		if !slices.Contains(site.Engines, n.Engine) {
			found.reportUnknown(atNode(n, "engine"), "engine", n.Engine, site.Engines)
		}
		for k, role := range n.Roles {
			if ix.roleByName[role] == nil {
				addUnknownRole(ix, found, atNode(n, "roles", k), role)
			}
		}
		checkLimits(found, n)
		checkMachine(ix, found, taken, n)
		checkImported(ix, found, n)
		checkAccess(ix, found, n)
		checkContainerDevices(ix, found, taken, n)
	}
}

func checkLimits(found *findings, n *site.Node) {
	l := &n.Limits
	if l.Swap != nil && l.Memory == 0 {
		// Control groups of version 1 limit memory and swap together.
		found.report(atNode(n, "swap"), "set memory too", "node %s has a swap limit but no memory limit", n.Name)
	}
	if !validCPUs(l.Cpus) || l.Cpus != 0 && l.Cpus < minCpus {
		found.report(atNode(n, "cpus"), "more than 0; 0 means no limit", "cpus = %v is not a number of processors", l.Cpus)
	}
	if l.Memory != 0 && l.Memory < minMemory {
		found.report(atNode(n, "memory"), "at least 16MiB", "memory = %d bytes is too little to start a node", l.Memory)
	}
	if l.Swap != nil && *l.Swap < 0 {
		found.report(atNode(n, "swap"), "0 or more", "swap = %d is negative", *l.Swap)
	}
	if l.Pids != 0 && l.Pids < minPids {
		found.report(atNode(n, "pids"), fmt.Sprintf("at least %d", minPids), "pids = %d is too few to start a node",
			l.Pids)
	}
	if l.Pids > site.MaxPids {
		found.report(atNode(n, "pids"), fmt.Sprintf("at most %d; 0 is no limit", site.MaxPids),
			"pids = %d is more than the kernel supports", l.Pids)
	}
	checkDiskLimits(found, n)
	if _, err := site.NormalizeProcessors(l.Pin); err != nil {
		found.report(atNode(n, "pin"), `such as "0-3,8"`, "pin = %q: %v", l.Pin, err)
	}
}

// checkDiskLimits checks the limits of what a node reads and writes.
func checkDiskLimits(found *findings, n *site.Node) {
	l := n.Limits.Disk
	switch {
	case l == (diskio.Limits{}):
	case n.Virtual():
		found.report(atNode(n, "disk"), "write vm.read, vm.write and vm.iops, or limits of single disks",
			"node %s is a virtual machine, which reads and writes only its own disks", n.Name)
	case n.Privileged:
		found.report(atNode(n, "disk"), "remove disk or privileged",
			"node %s is privileged, so it could remove its limits of disks", n.Name)
	case l.IOPS < 0 || l.IOPS > diskio.MaxIOPS:
		found.report(atNode(n, "disk", "iops"), fmt.Sprintf("1 to %d; 0 is no limit", int64(diskio.MaxIOPS)),
			"disk: iops = %d is not a number of requests", l.IOPS)
	}
}
