package argv

import (
	"encoding/json"
	"fmt"
	"slices"

	"orrery/internal/image/foreign"
	"orrery/internal/site"
)

// A Disk describes the foreign disk that a machine boots.
type Disk struct {
	Format string // of the image in the store
	Seed   bool   // a drive contains the seed that identifies the node
	Empty  bool   // the seed drive is empty, as in the machine whose state is taken over
	Code   string // firmware, for site.UEFI
}

// Names of the files of a machine with a foreign disk.
const (
	Base    = "base"    // the image in the store
	Overlay = "overlay" // what the node has written
	Vars    = "vars"    // the firmware's variables
	Seed    = "seed"
)

// The fdsets in which QEMU finds the files (add-fd).
const (
	baseFDSet = 10 + iota
	overlayFDSet
	varsFDSet
	seedFDSet
)

// The link through which only the host reaches the SSH server of a guest. QEMU listens in its own
// network namespace, which no other process is in, and forwards connections to that port. The guest
// cannot reach anything through the link.
const (
	LinkMAC     = "52:54:00:6f:72:79"
	LinkAddress = "169.254.77.15/24"
	LinkPort    = 2222
	linkNet     = "169.254.77.0/24"
	linkGuest   = "169.254.77.15"
	linkHost    = "169.254.77.2"
)

// SeedDrive is the id of the drive with the guest's seed.
const SeedDrive = "seed-drive"

// imported returns the command line of a machine with a foreign disk. QEMU relies on nothing in the
// header of an image: it is told the formats and backing files.
func (m *Machine) imported(files *Files, slots Slots) []string {
	return slices.Concat(m.machineArgs(), m.memory(), m.firmware(files), serial(files), monitor(files), slots.ports(),
		m.disk(files), m.seed(files), m.link(),
		m.cards(files, slots), pciFunctions(m.PCI), screen, m.incoming())
}

// screen is a graphics card that every firmware and system supports, and a pointer that follows the
// viewer's. QEMU does not listen for viewers but receives their connections.
var screen = []string{"-vnc", "none", "-device", "VGA", "-device", "qemu-xhci,id=usb", "-device",
	"usb-tablet,bus=usb.0"}

// BootFiles returns the files of the host that the machine boots from.
func (m *Machine) BootFiles() []string {
	if m.Boot == nil {
		return nil // the disk is passed open, and firmware is visible anyway
	}
	return []string{m.Boot.Kernel, m.Boot.Initramfs}
}

type node = map[string]any

// blockdev returns the options for one node of QEMU's block graph.
func blockdev(n node) []string {
	text, err := json.Marshal(n)
	if err != nil {
		panic("argv: " + err.Error()) // plain data always marshals
	}
	return []string{"-blockdev", string(text)}
}

// file returns a node on an open file that QEMU receives.
func file(name string, set, fd int, writable bool) []string {
	n := node{"driver": "file", "node-name": name, "filename": fmt.Sprintf("/dev/fdset/%d", set), "read-only": !writable}
	if writable {
		n["discard"] = "unmap"
	}
	return append([]string{"-add-fd", fmt.Sprintf("fd=%d,set=%d", fd, set)}, blockdev(n)...)
}

func (m *Machine) firmware(files *Files) []string {
	if m.Node.Disk.Firmware != site.UEFI {
		return nil
	}
	return slices.Concat(
		blockdev(node{"driver": "file", "node-name": "code", "filename": m.Disk.Code, "read-only": true}),
		file("vars", varsFDSet, files.Add(Vars), true),
		[]string{"-machine", "pflash0=code,pflash1=vars"},
	)
}

func (m *Machine) disk(files *Files) []string {
	base := node{"driver": m.Disk.Format, "node-name": "base", "file": "base-file", "read-only": true}
	if m.Disk.Format != foreign.Raw {
		base["backing"] = nil
	}
	device := "virtio-blk-pci,drive=root,bootindex=1"
	if m.Node.Disk.Bus == site.SATA {
		device = "ide-hd,bus=ide.0,drive=root,bootindex=1"
	}
	return slices.Concat(
		file("base-file", baseFDSet, files.Add(Base), false), blockdev(base),
		file("root-file", overlayFDSet, files.Add(Overlay), true),
		blockdev(node{"driver": "qcow2", "node-name": "root", "file": "root-file", "backing": "base", "discard": "unmap"}),
		[]string{"-device", device, "-device", "virtio-rng-pci"},
	)
}

// seed returns a drive that can be emptied while the guest runs. Cloud kernels support virtio-scsi,
// but not always SATA.
func (m *Machine) seed(files *Files) []string {
	if !m.Disk.Seed {
		return nil
	}
	drive := []string{"-device", "virtio-scsi-pci,id=scsi", "-device", "scsi-cd,bus=scsi.0,id=" + SeedDrive}
	if m.Disk.Empty {
		return drive
	}
	drive[len(drive)-1] += ",drive=seed"
	return slices.Concat(
		file("seed-file", seedFDSet, files.Add(Seed), false),
		blockdev(node{"driver": "raw", "node-name": "seed", "file": "seed-file", "read-only": true}),
		drive,
	)
}

func (m *Machine) link() []string {
	if !m.Disk.Seed {
		return nil
	}
	return []string{
		"-netdev", fmt.Sprintf("user,id=link,restrict=on,ipv6=off,net=%s,host=%s,hostfwd=tcp::%d-%s:22", linkNet, linkHost,
			LinkPort, linkGuest),
		"-device", fmt.Sprintf("virtio-net-pci,netdev=link,mac=%s,romfile=", LinkMAC),
	}
}
