package site

import (
	"cmp"
	"path"
	"slices"
	"strings"
)

// A Disk is how a virtual machine has a disk image that others have made. The zero Disk: its root
// stands on layers.
type Disk struct {
	Firmware string `json:"firmware,omitempty"` // one of Firmwares
	Guest    string `json:"guest,omitempty"`    // one of Guests
	Login    string `json:"login,omitempty"`    // as whom the host logs in
	Bus      string `json:"bus,omitempty"`      // one of Buses
}

// The firmware that boots a disk.
const (
	BIOS = "bios"
	UEFI = "uefi"
)

// Firmwares are all of them, that of images which name none first: nearly every image boots by it,
// it needs nothing but QEMU, and takes the least time.
var Firmwares = []string{BIOS, UEFI}

// What is known of the system on a disk.
const (
	CloudInit = "cloud-init" // it sets itself up by a NoCloud seed and has an SSH server
	NoGuest   = "none"       // nothing: it is switched on and off
)

// Guests are all of them, that of images which name none first.
var Guests = []string{CloudInit, NoGuest}

// SATA is the bus of disks for guests without drivers for Virtio.
const SATA = "sata"

// Buses are those on which a disk can be, that of images which name none first.
var Buses = []string{Virtio, SATA}

// DefaultLogin is as whom the host logs in at a guest whose image names nobody.
const DefaultLogin = "orrery"

// diskNames are the endings of names of files that are disk images and no archives.
var diskNames = []string{".qcow2", ".raw", ".img"}

// IsDisk reports whether the image is that of a disk and not of a root file system.
func (i *Image) IsDisk() bool { return slices.Contains(diskNames, strings.ToLower(path.Ext(i.Import))) }

// Disk returns how virtual machines have the image; the zero Disk, if it is that of a root file system.
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
