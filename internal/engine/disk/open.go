package disk

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"

	"orrery/internal/host/devices"
	"orrery/internal/image/foreign"
	"orrery/internal/problem"
	"orrery/internal/site"
)

// Open opens a disk to be passed to a machine. No other machine can use it then: an open device is
// claimed, and QEMU locks a file. Open refuses an image that refers to other files of the host, has
// another format, or is damaged. It grows a raw file that is too small. QEMU grows an image.
func (d *Disk) Open() (*os.File, error) {
	flags := unix.O_RDWR | unix.O_CLOEXEC | unix.O_NOFOLLOW | unix.O_NONBLOCK
	if d.Drive.IsDevice() { // the path may be a link, such as /dev/vg/lv
		flags = flags&^unix.O_NOFOLLOW | unix.O_EXCL
	}
	fd, err := unix.Open(d.Path, flags, 0)
	switch {
	case errors.Is(err, unix.EBUSY):
		return nil, d.refused("is in use: it is mounted on this host, or another machine uses it").
			Try("lsblk -f %s shows its user; choose another disk for node %s", d.Path, d.Node)
	case errors.Is(err, unix.ENOENT):
		return nil, d.refused("does not exist").Try("create it, or correct the site file")
	case err != nil:
		return nil, d.failed(&os.PathError{Op: "open", Path: d.Path, Err: err}, "cannot be opened")
	}
	f := os.NewFile(uintptr(fd), d.Path)
	if err := d.validate(f); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

func (d *Disk) validate(f *os.File) error {
	var st unix.Stat_t
	if err := unix.Fstat(int(f.Fd()), &st); err != nil {
		return d.failed(os.NewSyscallError("fstat", err), "cannot be inspected")
	}
	switch kind := st.Mode & unix.S_IFMT; {
	case d.Drive.IsDevice() && kind != unix.S_IFBLK:
		return d.refused("is not a block device").
			Try(`write disk = "raw" for a file, or the path of a disk, a partition or a logical volume`)
	case d.Drive.IsDevice():
		return d.checkUnclaimed(devices.Number{Block: true, Major: unix.Major(st.Rdev), Minor: unix.Minor(st.Rdev)})
	case kind != unix.S_IFREG:
		return d.refused("is not a regular file").Try("recreate the node: orrery down %s, then orrery up", d.Node)
	case d.Drive.Disk == site.RawFile:
		return d.grow(f, st.Size)
	}
	disk, err := foreign.Inspect("disk.qcow2", f, st.Size)
	var refused *foreign.InvalidError
	switch {
	case errors.As(err, &refused):
		return d.refused("is refused: %s", refused.What).
			Try("%s; or run orrery snapshot restore, or recreate node %s", refused.Cure, d.Node)
	case err != nil:
		return d.failed(err, "cannot be read")
	}
	return d.checkNotShrunk(disk.Size)
}

// checkUnclaimed returns a problem if a container has the device.
func (d *Disk) checkUnclaimed(n devices.Number) error {
	user, err := devices.Local.User(n)
	if err != nil {
		return d.failed(err, "cannot be inspected")
	}
	if user != "" {
		return d.refused("is used by node %s", user).Try("stop that node first, or choose another disk for node %s", d.Node)
	}
	return nil
}

// NeedsGrow reports whether an open image is smaller than declared. Then QEMU must grow it.
func (d *Disk) NeedsGrow(f *os.File) (bool, error) {
	if d.Drive.Disk != site.QCow2 {
		return false, nil
	}
	info, err := f.Stat()
	if err != nil {
		return false, d.failed(err, "cannot be inspected")
	}
	disk, err := foreign.Inspect("disk.qcow2", f, info.Size())
	if err != nil {
		return false, d.failed(err, "cannot be read")
	}
	return disk.Size < d.Drive.Size, nil
}

// grow grows a raw file to its declared size.
func (d *Disk) grow(f *os.File, size int64) error {
	if err := d.checkNotShrunk(size); err != nil || size == d.Drive.Size {
		return err
	}
	if err := f.Truncate(d.Drive.Size); err != nil {
		return d.failed(err, "cannot be enlarged")
	}
	return nil
}

// checkNotShrunk returns a problem if the declared size is smaller than the disk, because the guest would
// lose data.
func (d *Disk) checkNotShrunk(size int64) error {
	if size <= d.Drive.Size {
		return nil
	}
	what, cure := d.Drive.ShrinkError(d.Node, size)
	return problem.New(problem.Mistake, "%s", what).At(d.Path).Try("%s", cure)
}
