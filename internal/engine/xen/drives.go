package xen

import (
	"fmt"

	"orrery/internal/image/foreign"
)

// A drive is a disk as the toolstack is told of it: in the order of their list, the guest sees xvda, xvdb and so on.
type drive struct {
	path   string // as the toolstack and the backend see it
	format string // foreign.QCow2 or foreign.Raw; "": a device of the host, which its kernel serves
}

// disks are the drives of a domain, as xl-disk-configuration(5) has them. Formats are said, and never guessed; files are served by the domain's QEMU, which is confined.
func (d *domain) disks() (all []string) {
	for i, drive := range d.drives {
		format, backend := drive.format, "qdisk"
		if format == "" {
			format, backend = foreign.Raw, "phy"
		}
		all = append(all, fmt.Sprintf("vdev=%s,access=rw,format=%s,backendtype=%s,target=%s", device(i), format, backend, drive.path))
	}
	return all
}

// device is what the guest calls a drive.
func device(i int) string { return "xvd" + string(rune('a'+i)) }
