package argv

import (
	"cmp"
	"encoding/json"
	"fmt"

	"orrery/internal/site"
)

// A Drive is a disk as QEMU is told of it, on its command line or at its monitor: what bounds it,
// what is behind it, and what the guest sees.
type Drive struct{ Group, Block, Device map[string]any }

// DriveOf describes a disk whose file QEMU opens by a name, in a slot. The format is said, and that
// there is nothing behind it: an image is not believed. The machine stands still when the host has
// no more room, so that the guest loses nothing; of all else that goes wrong, the guest is told.
func DriveOf(d site.Drive, file, slot string) Drive {
	cache := map[string]any{"direct": d.Direct(), "no-flush": d.Cache == "unsafe"}
	protocol, format := "file", d.Disk
	if d.IsDevice() {
		protocol, format = "host_device", site.RawFile
	}
	inner := map[string]any{
		"driver": format, "node-name": "format-" + d.Name, "cache": cache, "discard": "unmap",
		"file": map[string]any{"driver": protocol, "node-name": "file-" + d.Name, "filename": file,
			"aio": cmp.Or(d.AIO, site.AIOs[0]), "cache": cache, "discard": "unmap"},
	}
	if format == site.QCow2 {
		inner["backing"] = nil
	}
	return Drive{
		Group: map[string]any{"qom-type": "throttle-group", "id": GroupID(d), "limits": LimitsOf(d)},
		Block: map[string]any{"driver": "throttle", "node-name": BlockID(d), "throttle-group": GroupID(d), "file": inner,
			"cache": cache, "discard": "unmap"},
		Device: map[string]any{
			"driver": "virtio-blk-pci", "id": DriveID(d), "drive": BlockID(d), "serial": d.Name, "bus": slot,
			"write-cache": writeCache(d), "werror": "enospc", "rerror": "report",
		},
	}
}

// writeCache tells whether the guest has to ask for what it writes to be kept.
func writeCache(d site.Drive) string {
	if d.Cache == "writethrough" || d.Cache == "directsync" {
		return "off"
	}
	return "on"
}

// LimitsOf returns what bounds a disk, as QEMU's throttle groups have it; 0 is no bound.
func LimitsOf(d site.Drive) map[string]int64 {
	return map[string]int64{"bps-read": d.Read, "bps-write": d.Write, "iops-total": d.IOPS}
}

// DriveID is what QEMU calls what the guest sees of a disk.
func DriveID(d site.Drive) string { return "drive-" + d.Name }

// BlockID is what it calls what is behind that.
func BlockID(d site.Drive) string { return "disk-" + d.Name }

// GroupID is what it calls what bounds a disk.
func GroupID(d site.Drive) string { return "limits-" + d.Name }

// DriveFile is the open file of a disk.
func DriveFile(d site.Drive) string { return "disk " + d.Name }

// drives are the disks.
func (m *Machine) drives(files *Files, slots Slots) ([]string, error) {
	var args []string
	for _, d := range m.Node.VM.Drives() {
		fd := files.Take(DriveFile(d))
		args = append(args, "-add-fd", fmt.Sprintf("fd=%d,set=%d", fd, fd))
		drive := DriveOf(d, fmt.Sprintf("/dev/fdset/%d", fd), Slot(slots.Taken[DriveID(d)]))
		for _, part := range []struct {
			option string
			of     map[string]any
		}{{"-object", drive.Group}, {"-blockdev", drive.Block}, {"-device", drive.Device}} {
			text, err := json.Marshal(part.of)
			if err != nil {
				return nil, err
			}
			args = append(args, part.option, string(text))
		}
	}
	return args, nil
}
