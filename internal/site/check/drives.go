package check

import (
	"cmp"
	"path"
	"slices"
	"strings"

	"orrery/internal/site"
)

// Limits of disks.
const (
	minDisk   = 64 << 20
	maxDisk   = 1 << 46 // more than any host has
	maxDrives = 16
	maxSerial = 20 // a guest sees no more characters of the name (virtio_blk.h of Linux)
)

// checkDrives checks the disks of a virtual machine.
func checkDrives(ix *index, found *findings, taken holders, n *site.Node) {
	checkDiskSettings(found, n.VM.DiskSettings, func(name string) []string { return atNode(n, "vm", name) })
	if n.VM.Disk == "" && n.VM.Size != 0 {
		found.report(atNode(n, "vm", "size"), `write vm.disk = "qcow2", or remove it`,
			"node %s has a disk size but no disk", n.Name)
	}
	if i, ok := ix.Image(n.Image); ok && i.IsDisk() && n.VM.Disk != "" {
		found.report(atNode(n, "vm", "disk"), "remove it", "node %s boots a disk image and writes to that disk", n.Name)
	}
	if len(n.VM.Disks) > maxDrives {
		found.report(atNode(n, "vm", "disks"), "remove some", "node %s has %d disks; the maximum is %d", n.Name,
			len(n.VM.Disks), maxDrives)
		return
	}
	seen := map[string]bool{site.RootDisk: true}
	for i := range n.VM.Disks {
		d := &n.VM.Disks[i]
		at := func(name string) []string { return atNode(n, "vm", "disks", i, name) }
		switch {
		case !ValidLabel(d.Name):
			found.report(at("name"), labelCure(d.Name), "disk name %q is not valid", d.Name)
		case len(d.Name) > maxSerial:
			found.report(at("name"), "at most 20 characters: a guest sees only these", "disk name %q is too long",
				d.Name)
		case seen[d.Name]:
			found.report(at("name"), "choose another name", "node %s already has a disk %s", n.Name, d.Name)
		}
		seen[d.Name] = true
		checkDiskSettings(found, d.DiskSettings, at)
	}
	for i, d := range n.VM.Drives() {
		if n.VM.Disk != "" {
			i--
		}
		at := func(name string) []string {
			if i < 0 {
				return atNode(n, "vm", name)
			}
			return atNode(n, "vm", "disks", i, name)
		}
		checkDrive(found, taken, n, d, at)
	}
}

// checkDrive checks one disk after the machine's defaults are filled in.
func checkDrive(found *findings, taken holders, n *site.Node, d site.Drive, at func(string) []string) {
	switch {
	case d.IsDevice():
		checkDevice(found, taken, n, d, at)
	case d.Disk != site.QCow2 && d.Disk != site.RawFile:
		found.report(at("disk"), `"qcow2", "raw" or the path of a device, such as "/dev/vg/lv"`,
			"disk = %q is not a kind of disk", d.Disk)
	case d.Size == 0:
		found.report(at("size"), `such as size = "8GiB"`, "disk %s of node %s is a file without a size",
			d.Name, n.Name)
	case d.Size < minDisk || d.Size > maxDisk || d.Size%512 != 0:
		found.report(at("size"), "from 64MiB to 64TiB, in whole sectors of 512 bytes",
			"size = %d bytes is not a valid disk size", d.Size)
	}
	if d.AIO == "native" && slices.Contains(site.Caches, cmp.Or(d.Cache, "writeback")) && !d.BypassesCache() {
		found.report(at("aio"), `add cache = "none" or "directsync"`,
			`aio = "native" needs a cache mode that bypasses the host's page cache`)
	}
}

// checkDevice checks that only one node uses a device of the host.
func checkDevice(found *findings, taken holders, n *site.Node, d site.Drive, at func(string) []string) {
	if d.Size != 0 {
		found.report(at("size"), "remove it", "disk %s of node %s is a device, whose size is fixed", d.Name, n.Name)
	}
	if !strings.HasPrefix(d.Disk, "/dev/") || path.Clean(d.Disk) != d.Disk {
		found.report(at("disk"), `a path in /dev, such as "/dev/vg/lv" or "/dev/disk/by-id/…"`,
			"disk = %q is not the path of a device", d.Disk)
		return
	}
	if other := taken.claim(n, d.Disk); other != nil {
		found.report(at("disk"), "give each node its own device", "device %s is already used by node %s", d.Disk,
			other.Name)
	}
}

// checkDiskSettings checks the settings for the use of a disk.
func checkDiskSettings(found *findings, m site.DiskSettings, at func(string) []string) {
	if m.Cache != "" && !slices.Contains(site.Caches, m.Cache) {
		found.report(at("cache"), "use "+sentence(site.Caches), "cache = %q is unknown", m.Cache)
	}
	if m.AIO != "" && !slices.Contains(site.AIOs, m.AIO) {
		found.report(at("aio"), "use "+sentence(site.AIOs), "aio = %q is unknown", m.AIO)
	}
	if m.Read < 0 || m.Write < 0 || m.IOPS < 0 {
		found.report(at("read"), "bytes or requests per second; or remove it",
			"a limit of a disk is negative")
	}
}
