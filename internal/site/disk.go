package site

import (
	"cmp"
	"path"
	"slices"
	"strings"
)

// A Disk describes how a virtual machine uses a disk image from another vendor. The zero Disk means
// that its root file system consists of layers.
type Disk struct {
	Firmware string `json:"firmware,omitempty"` // one of Firmwares
	Guest    string `json:"guest,omitempty"`    // one of Guests
	Login    string `json:"login,omitempty"`    // user that the host logs in as
	Bus      string `json:"bus,omitempty"`      // one of Buses
}

// The firmware that boots a disk.
const (
	BIOS = "bios"
	UEFI = "uefi"
)

// Firmwares lists all firmware. The first is the default, because nearly every image boots with it.
// BIOS is also the fastest, and needs only QEMU.
var Firmwares = []string{BIOS, UEFI}

// What Orrery knows about the system on a disk.
const (
	CloudInit = "cloud-init" // it configures itself from a NoCloud seed and runs an SSH server
	NoGuest   = "none"       // nothing; Orrery only switches it on and off
)

// Guests lists all values of Disk.Guest. The first is the default.
var Guests = []string{CloudInit, NoGuest}

// SATA is the disk bus for guests without Virtio drivers.
const SATA = "sata"

// Buses lists the disk buses. The first is the default.
var Buses = []string{Virtio, SATA}

// DefaultLogin is the user that the host logs in as if the image names none.
const DefaultLogin = "orrery"

// diskNames are the file name suffixes of disk images, as opposed to archives.
var diskNames = []string{".qcow2", ".raw", ".img"}

// IsDisk reports whether the image is a disk image and not a root file system.
func (i *Image) IsDisk() bool { return slices.Contains(diskNames, strings.ToLower(path.Ext(i.Import))) }

// Disk returns how virtual machines use the image, or the zero Disk for a root file system.
func (i *Image) Disk() Disk {
	if !i.IsDisk() {
		return Disk{}
	}
	d := Disk{
		Firmware: cmp.Or(i.Firmware, Firmwares[0]), Guest: cmp.Or(i.Guest, Guests[0]), Login: i.Login,
		Bus: cmp.Or(i.Bus, Buses[0]),
	}
	if d.Guest == CloudInit {
		d.Login = cmp.Or(d.Login, DefaultLogin)
	}
	return d
}
