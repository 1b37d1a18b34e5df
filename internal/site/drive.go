package site

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// A Drive is an additional disk of a virtual machine, next to the one of its image.
type Drive struct {
	Name string `toml:"name" json:"name"` // the guest sees it as /dev/disk/by-id/virtio-NAME
	// Disk is QCow2 or RawFile for a file on the host, or the path of a device of the host.
	Disk string `toml:"disk" json:"disk"`
	// size of a file in bytes, as the guest sees it, or 0 for a device
	Size int64 `toml:"size" unit:"size" json:"size,omitzero"`

	DiskSettings
}

// A DiskSettings has the settings for the use of a disk. The machine's own
// DiskSettings hold the defaults for its disks.
type DiskSettings struct {
	// Cache is one of Caches, or "" for writeback, which works everywhere.
	Cache string `toml:"cache" json:"cache,omitempty"`
	AIO   string `toml:"aio" json:"aio,omitempty"`                 // one of AIOs, or "" for threads
	Read  int64  `toml:"read" unit:"size" json:"read,omitempty"`   // bytes per second, or 0 for no limit
	Write int64  `toml:"write" unit:"size" json:"write,omitempty"` // bytes per second, or 0 for no limit
	IOPS  int64  `toml:"iops" json:"iops,omitempty"`               // requests per second, or 0 for no limit
}

// Values of Drive.Disk, other than the path of a device.
const (
	QCow2   = "qcow2"
	RawFile = "raw"
)

// Caches are the cache modes of a disk on the host. AIOs are the modes of asynchronous I/O. Both
// have QEMU's names.
var (
	Caches = []string{"none", "writeback", "writethrough", "directsync", "unsafe"}
	AIOs   = []string{"threads", "native", "io_uring"}
)

// RootDisk is the guest's name for the disk that stores what its machine writes (VM.Disk).
const RootDisk = "orrery-root"

// IsDevice reports whether the disk is a device of the host and not a file.
func (d *Drive) IsDevice() bool { return strings.HasPrefix(d.Disk, "/") }

// ShrunkDisk returns the first disk file that would be smaller in machine wanted than in v, and its
// old size in bytes.
func (v VM) ShrunkDisk(wanted VM) (d Drive, oldSize int64, found bool) {
	sizes := map[string]int64{}
	for _, d := range v.Drives() {
		sizes[d.Name+"."+d.Disk] = d.Size
	}
	for _, d := range wanted.Drives() {
		if old := sizes[d.Name+"."+d.Disk]; !d.IsDevice() && d.Size < old {
			return d, old, true
		}
	}
	return d, 0, false
}

// ShrinkError returns an error message and its cure: a disk of a node cannot become smaller than
// current bytes.
func (d *Drive) ShrinkError(node string, current int64) (what, cure string) {
	return fmt.Sprintf("node %s: disk %s cannot shrink from %s to %s", node, d.Name, sizeText(current),
			sizeText(d.Size)),
		fmt.Sprintf("write size = %q or more, or recreate node %s", sizeText(current), node)
}

// sizeText returns a size as a site file writes it, rounded up to whole MiB.
func sizeText(bytes int64) string {
	if bytes%(1<<30) == 0 {
		return strconv.FormatInt(bytes>>30, 10) + "GiB"
	}
	return strconv.FormatInt((bytes+1<<20-1)>>20, 10) + "MiB"
}

// BypassesCache reports whether reads and writes bypass the host's page cache.
func (m DiskSettings) BypassesCache() bool { return m.Cache == "none" || m.Cache == "directsync" }

// withDefaults returns m with defaults from by for the fields that are unset.
func (m DiskSettings) withDefaults(by DiskSettings) DiskSettings {
	return DiskSettings{
		Cache: cmp.Or(m.Cache, by.Cache), AIO: cmp.Or(m.AIO, by.AIO), Read: cmp.Or(m.Read, by.Read),
		Write: cmp.Or(m.Write, by.Write), IOPS: cmp.Or(m.IOPS, by.IOPS),
	}
}

// Drives returns the disks of a machine with all defaults filled in. The disk of VM.Disk comes
// first, if the machine has one.
func (v VM) Drives() (all []Drive) {
	if v.Disk != "" {
		all = append(all, Drive{Name: RootDisk, Disk: v.Disk, Size: v.Size})
	}
	all = append(all, v.Disks...)
	for i := range all {
		all[i].DiskSettings = all[i].withDefaults(v.DiskSettings)
	}
	return all
}

// A DiskChange is the change of the disks of a running machine.
type DiskChange struct {
	In, Out []Drive // plugged and unplugged
	Bound   []Drive // given new limits
	Larger  []Drive
}

// DiskChange returns how to change the disks of a running machine into those of wanted. It returns
// false for live if the change needs a restart.
func (v VM) DiskChange(wanted VM) (r DiskChange, live bool) {
	drives := map[string]Drive{}
	for _, d := range v.Drives() {
		drives[d.Name] = d
	}
	for _, d := range wanted.Drives() {
		old, ok := drives[d.Name]
		delete(drives, d.Name)
		bounds := d.Read != old.Read || d.Write != old.Write || d.IOPS != old.IOPS
		switch {
		case !ok:
			r.In = append(r.In, d)
		case d.Disk != old.Disk || d.Cache != old.Cache || d.AIO != old.AIO || d.Size < old.Size:
			return r, false
		default:
			if bounds {
				r.Bound = append(r.Bound, d)
			}
			if d.Size > old.Size {
				r.Larger = append(r.Larger, d)
			}
		}
	}
	for _, d := range v.Drives() {
		if _, gone := drives[d.Name]; gone {
			r.Out = append(r.Out, d)
		}
	}
	root := func(d Drive) bool { return d.Name == RootDisk }
	return r, !slices.ContainsFunc(r.In, root) && !slices.ContainsFunc(r.Out, root)
}

// Fixed returns the part of the settings that cannot change while the machine runs, whatever
// happens to its disks.
func (v VM) Fixed() VM {
	v.Size, v.Disks, v.DiskSettings = 0, nil, DiskSettings{}
	return v
}

// String returns the steps of the change.
func (r DiskChange) String() string {
	var all []string
	for _, part := range []struct {
		does string
		to   []Drive
	}{{"plugs", r.In}, {"unplugs", r.Out}, {"bounds", r.Bound}, {"enlarges", r.Larger}} {
		for _, d := range part.to {
			all = append(all, part.does+" disk "+d.Name)
		}
	}
	return strings.Join(all, ", ")
}
