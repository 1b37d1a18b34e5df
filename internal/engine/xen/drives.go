package xen

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"orrery/internal/engine/confine"
	"orrery/internal/engine/nodedir"
	"orrery/internal/engine/vm"
	"orrery/internal/guest/boot"
	"orrery/internal/host"
	"orrery/internal/image/foreign"
	"orrery/internal/image/rootfs"
	"orrery/internal/site"
	"orrery/internal/tree"
)

// A drive is a disk as the toolstack is told of it.
type drive struct {
	device string // what the guest calls it
	path   string // as the toolstack and the backend see it
	format string // foreign.QCow2 or foreign.Raw; "": a device of the host, which its kernel serves
}

// disks are the drives of a domain, as xl-disk-configuration(5) has them. Formats are said, and
// never guessed; files are served by the domain's QEMU, which is confined.
func (d *domain) disks() (all []string) {
	for _, drive := range d.drives {
		format, backend := drive.format, "qdisk"
		if format == "" {
			format, backend = foreign.Raw, "phy"
		}
		all = append(all, fmt.Sprintf("vdev=%s,access=rw,format=%s,backendtype=%s,target=%s", drive.device, format, backend,
			drive.path))
	}
	return all
}

// bootDevice is what a guest calls the disk that it boots.
const bootDevice = "xvda"

// deviceOf is what a guest calls one of its other disks. Of xvda to xvdd, guests of the type hvm
// have an emulated disk, too, for which QEMU would open devices of the host by name (libxl_dm.c).
func deviceOf(i int) string { return "xvd" + string(rune('e'+i)) }

// firstSet is the set in which QEMU finds the first of them (confine.Opened).
const firstSet = foreign.SetUnder + 10

// addDisks adds the disks of the node to the domain. What opens a disk needs nothing else: the kernel of the
// host opens devices, and QEMU finds files open.
func (f *foundation) addDisks(m machine, r *nodedir.Record) error {
	for i, one := range r.VM.Drives() {
		d := m.Disk(one)
		file, err := d.Open() // which looks at it
		if err != nil {
			return err
		}
		short, err := d.Short(file)
		if err = errors.Join(err, file.Close()); err != nil {
			return err
		}
		entry := drive{deviceOf(i), confine.InSet(firstSet + i), one.Disk}
		if one.IsDevice() {
			entry.format = ""
			if entry.path, err = filepath.EvalSymlinks(one.Disk); err != nil {
				return err
			}
		} else {
			f.backend.Files = append(f.backend.Files, confine.Opened{Path: d.Path, Set: firstSet + i, Writes: true})
		}
		f.drives = append(f.drives, entry)
		if short {
			f.short = append(f.short, i)
		}
	}
	return nil
}

// cover hides the files of disks from the guest, by an empty directory beside them: one of the
// root's own file system, as no two files of what is shared may look the same.
func (m machine) cover(root string) (bind rootfs.Bind, err error) {
	private, err := tree.Open(m.Private())
	if err != nil {
		return bind, err
	}
	defer private.Close()
	empty := filepath.Join(vm.Hold, "empty")
	dir, err := private.MakeDown(empty, 0, 0)
	if err != nil {
		return bind, err
	}
	return rootfs.Bind{Source: filepath.Join(root, empty), Target: "/" + vm.Hold, ReadOnly: true}, dir.Close()
}

// tellDisks tells the guest how its disks are called: they have no serial numbers.
func tellDisks(dirs host.Dirs, m machine, r *nodedir.Record) error {
	var all []boot.Drive
	for i, d := range r.VM.Drives() {
		all = append(all, boot.Drive{Device: deviceOf(i), Name: d.Name})
	}
	if len(all) == 0 {
		return os.RemoveAll(vm.Told(dirs, m.Ref, boot.DrivesFile))
	}
	return vm.Tell(dirs, m.Ref, boot.DrivesFile, all)
}

// growImages grows images to their declared size; raw files have it already. QEMU names what is behind a disk
// by what the guest calls the disk, and by the format (xen-block.c).
func (f *foundation) growImages(ctx context.Context, m machine, all []site.Drive) error {
	if len(f.short) == 0 {
		return nil
	}
	q, err := m.monitor(ctx)
	if err != nil {
		return err
	}
	defer q.Close() //nolint:errcheck // all was answered
	for _, i := range f.short {
		if err := q.Do(ctx, "block_resize", map[string]any{"node-name": deviceOf(i) + "-" + all[i].Disk,
			"size": all[i].Size}, nil); err != nil {
			return m.DiskProblem(all[i], "does not get larger", err)
		}
	}
	return nil
}
