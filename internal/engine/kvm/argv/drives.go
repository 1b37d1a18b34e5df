package argv

import (
	"cmp"
	"encoding/json"
	"fmt"

	"orrery/internal/site"
)

// A Drive describes a disk to QEMU, on its command line or at its monitor: its limits, its backend,
// and the device that the guest sees.
type Drive struct{ Group, Block, Device map[string]any }

// DriveOf describes a disk in a slot. QEMU opens it by the path file. The format is given, and that
// there is no backing file, because the image's header is not trusted. When the host has no more
// room, the machine stops, so that the guest loses nothing. All other errors are reported to the
// guest.
func DriveOf(d site.Drive, file, slot string) Drive {
	cache := map[string]any{"direct": d.BypassesCache(), "no-flush": d.Cache == "unsafe"}
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

// writeCache reports whether the guest must flush what it writes, as "on" or "off".
func writeCache(d site.Drive) string {
	if d.Cache == "writethrough" || d.Cache == "directsync" {
		return "off"
	}
	return "on"
}

// LimitsOf returns the limits of a disk for QEMU's throttle groups, in which 0 is no limit.
func LimitsOf(d site.Drive) map[string]int64 {
	return map[string]int64{"bps-read": d.Read, "bps-write": d.Write, "iops-total": d.IOPS}
}

// DriveID returns QEMU's id of the device that the guest sees.
func DriveID(d site.Drive) string { return "drive-" + d.Name }

// BlockID returns QEMU's name of the disk's backend.
func BlockID(d site.Drive) string { return "disk-" + d.Name }

// GroupID returns QEMU's id of the disk's limits.
func GroupID(d site.Drive) string { return "limits-" + d.Name }

// DriveFile returns the name of a disk's open file.
func DriveFile(d site.Drive) string { return "disk " + d.Name }

// drives returns the disks.
func (m *Machine) drives(files *Files, slots Slots) ([]string, error) {
	var args []string
	for _, d := range m.Node.VM.Drives() {
		fd := files.Add(DriveFile(d))
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
