package site

import "strings"

// A Drive is a disk that a virtual machine has beside that of its image.
type Drive struct {
	Name string `toml:"name" json:"name"`                      // the guest sees it as /dev/disk/by-id/virtio-NAME
	Disk string `toml:"disk" json:"disk"`                      // QCow2 or RawFile: a file on the host; else the path of a device of the host
	Size int64  `toml:"size" unit:"size" json:"size,omitzero"` // bytes of a file, as the guest sees it; 0: a device

	Manner
}

// A Manner is how a disk is used: what a disk does not say of itself, its machine says of all.
type Manner struct {
	Cache string `toml:"cache" json:"cache,omitempty"`             // one of Caches; "": None
	AIO   string `toml:"aio" json:"aio,omitempty"`                 // one of AIOs; "": Threads
	Read  int64  `toml:"read" unit:"size" json:"read,omitempty"`   // bytes a second; 0: no limit
	Write int64  `toml:"write" unit:"size" json:"write,omitempty"` // bytes a second
	IOPS  int64  `toml:"iops" json:"iops,omitempty"`               // requests a second
}

// What a disk is on the host, beside the path of a device.
const (
	QCow2   = "qcow2"
	RawFile = "raw"
)

// Caches are the ways in which a host keeps what a disk has, and AIOs those in which QEMU reads and writes it, as QEMU calls them.
var (
	Caches = []string{"none", "writeback", "writethrough", "directsync", "unsafe"}
	AIOs   = []string{"threads", "native", "io_uring"}
)

// RootDisk is what the guest sees of the disk on which its machine keeps what it writes, if that has one.
const RootDisk = "orrery-root"

// IsDevice reports whether it is a device of the host, and no file.
func (d *Drive) IsDevice() bool { return strings.HasPrefix(d.Disk, "/") }

// Direct reports whether it is read and written past what the host remembers of it.
func (m Manner) Direct() bool { return m.Cache == "" || m.Cache == "none" || m.Cache == "directsync" }
