package site

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// A Drive is a disk that a virtual machine has beside that of its image.
type Drive struct {
	Name string `toml:"name" json:"name"` // the guest sees it as /dev/disk/by-id/virtio-NAME
	// QCow2 or RawFile: a file on the host; else the path of a device of the host
	Disk string `toml:"disk" json:"disk"`
	Size int64  `toml:"size" unit:"size" json:"size,omitzero"` // bytes of a file, as the guest sees it; 0: a device

	Manner
}

// A Manner is how a disk is used: what a disk does not say of itself, its machine says of all.
type Manner struct {
	// one of Caches; "": writeback, by which all works everywhere
	Cache string `toml:"cache" json:"cache,omitempty"`
	AIO   string `toml:"aio" json:"aio,omitempty"`                 // one of AIOs; "": threads
	Read  int64  `toml:"read" unit:"size" json:"read,omitempty"`   // bytes a second; 0: no limit
	Write int64  `toml:"write" unit:"size" json:"write,omitempty"` // bytes a second
	IOPS  int64  `toml:"iops" json:"iops,omitempty"`               // requests a second
}

// What a disk is on the host, beside the path of a device.
const (
	QCow2   = "qcow2"
	RawFile = "raw"
)

// Caches are the ways in which a host keeps what a disk has, and AIOs those in which QEMU reads and
// writes it, as QEMU calls them.
var (
	Caches = []string{"none", "writeback", "writethrough", "directsync", "unsafe"}
	AIOs   = []string{"threads", "native", "io_uring"}
)

// RootDisk is what the guest sees of the disk on which its machine keeps what it writes, if that has one.
const RootDisk = "orrery-root"

// IsDevice reports whether it is a device of the host, and no file.
func (d *Drive) IsDevice() bool { return strings.HasPrefix(d.Disk, "/") }

// Smaller returns the first disk in a file that a machine would have with less room than before,
// and how many bytes it had.
func (v VM) Smaller(wanted VM) (d Drive, oldSize int64, found bool) {
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

// NoSmaller says that a disk of a node cannot become smaller than the bytes that it has, and what
// can be done about it.
func (d *Drive) NoSmaller(node string, current int64) (what, cure string) {
	return fmt.Sprintf("node %s: disk %s has %s, and is to have %s", node, d.Name, sizeText(current), sizeText(d.Size)),
		fmt.Sprintf("a disk does not become smaller: write size = %q or more, or make node %s anew", sizeText(current), node)
}

// sizeText returns a size as a site file has it, in whole MiB that are no less.
func sizeText(bytes int64) string {
	if bytes%(1<<30) == 0 {
		return strconv.FormatInt(bytes>>30, 10) + "GiB"
	}
	return strconv.FormatInt((bytes+1<<20-1)>>20, 10) + "MiB"
}

// Direct reports whether it is read and written past what the host remembers of it.
func (m Manner) Direct() bool { return m.Cache == "none" || m.Cache == "directsync" }

// filled is a manner with what another says where it says nothing.
func (m Manner) filled(by Manner) Manner {
	return Manner{
		Cache: cmp.Or(m.Cache, by.Cache), AIO: cmp.Or(m.AIO, by.AIO), Read: cmp.Or(m.Read, by.Read),
		Write: cmp.Or(m.Write, by.Write), IOPS: cmp.Or(m.IOPS, by.IOPS),
	}
}

// Drives returns the disks of a machine, each with all that holds for it: that of its root comes
// first, if it has one.
func (v VM) Drives() (all []Drive) {
	if v.Disk != "" {
		all = append(all, Drive{Name: RootDisk, Disk: v.Disk, Size: v.Size})
	}
	all = append(all, v.Disks...)
	for i := range all {
		all[i].Manner = all[i].filled(v.Manner)
	}
	return all
}

// A Replug is how the disks of a machine that runs change.
type Replug struct {
	In, Out []Drive // come and go
	Bound   []Drive // get other bounds
	Larger  []Drive
}

// Replug says how the disks of a running machine become those of another; it cannot be if not live.
func (v VM) Replug(wanted VM) (r Replug, live bool) {
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

// Fixed is what of a machine cannot change while it runs, whatever becomes of its disks.
func (v VM) Fixed() VM {
	v.Size, v.Disks, v.Manner = 0, nil, Manner{}
	return v
}

// String says what is done.
func (r Replug) String() string {
	var all []string
	for _, part := range []struct {
		does string
		to   []Drive
	}{{"plugs", r.In}, {"unplugs", r.Out}, {"bounds", r.Bound}, {"makes larger", r.Larger}} {
		for _, d := range part.to {
			all = append(all, part.does+" disk "+d.Name)
		}
	}
	return strings.Join(all, ", ")
}
