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

// A drive describes a disk to the toolstack.
type drive struct {
	device string // the guest's name of it
	path   string // as the toolstack and the backend see it
	format string // foreign.QCow2 or foreign.Raw, or "" for a device of the host, which its kernel serves
}

// disks returns the drives of a domain in the format of xl-disk-configuration(5). The formats are
// always given, and never guessed. The domain's QEMU, which is confined, serves files.
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

// bootDevice is the guest's name of the disk that it boots.
const bootDevice = "xvda"

// deviceOf returns the guest's name of one of its other disks. Guests of the type HVM also have
// emulated disks for xvda to xvdd, for which QEMU would open devices of the host by name
// (libxl_dm.c).
func deviceOf(i int) string { return "xvd" + string(rune('e'+i)) }

// firstDiskFDSet is the fdset in which QEMU finds the first of these disks (confine.FDSetFile).
const firstDiskFDSet = foreign.BackingFDSet + 10

// addDisks adds the disks of the node to the domain. The domain's backends need no other access:
// the host's kernel opens devices, and QEMU finds files open.
func (f *environment) addDisks(m machine, r *nodedir.Record) error {
	for i, one := range r.VM.Drives() {
		d := m.Disk(one)
		file, err := d.Open() // this also checks the disk
		if err != nil {
			return err
		}
		short, err := d.NeedsGrow(file)
		if err = errors.Join(err, file.Close()); err != nil {
			return err
		}
		entry := drive{deviceOf(i), confine.FDSetPath(firstDiskFDSet + i), one.Disk}
		if one.IsDevice() {
			entry.format = ""
			if entry.path, err = filepath.EvalSymlinks(one.Disk); err != nil {
				return err
			}
		} else {
			f.backend.Files = append(f.backend.Files, confine.FDSetFile{Path: d.Path, Set: firstDiskFDSet + i, Writes: true})
		}
		f.drives = append(f.drives, entry)
		if short {
			f.short = append(f.short, i)
		}
	}
	return nil
}

// diskDirCover returns the mount that hides disk files from the guest: an empty directory beside them. It
// must be in the root's own file system, because no two files of a share may have the same inode
// number.
func (m machine) diskDirCover(root string) (bind rootfs.Bind, err error) {
	private, err := tree.Open(m.Private())
	if err != nil {
		return bind, err
	}
	defer private.Close()
	empty := filepath.Join(vm.DiskDir, "empty")
	dir, err := private.MkdirAllNoFollow(empty, 0, 0)
	if err != nil {
		return bind, err
	}
	return rootfs.Bind{Source: filepath.Join(root, empty), Target: "/" + vm.DiskDir, ReadOnly: true}, dir.Close()
}

// writeDiskNames writes the names of a node's disks for the guest, because they have no serial numbers.
func writeDiskNames(dirs host.Dirs, m machine, r *nodedir.Record) error {
	var all []boot.Drive
	for i, d := range r.VM.Drives() {
		all = append(all, boot.Drive{Device: deviceOf(i), Name: d.Name})
	}
	if len(all) == 0 {
		return os.RemoveAll(vm.GuestFilePath(dirs, m.Ref, boot.DrivesFile))
	}
	return vm.WriteGuestFile(dirs, m.Ref, boot.DrivesFile, all)
}

// growImages grows images to their declared size. Raw files have that size already. QEMU's name of
// a backend consists of the guest's name of the disk and the format (xen-block.c).
func (f *environment) growImages(ctx context.Context, m machine, all []site.Drive) error {
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
			return m.DiskProblem(all[i], "could not be enlarged", err)
		}
	}
	return nil
}
