package rootfs

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"

	"golang.org/x/sys/unix"
)

// A DeviceFile is a device of the host for a container.
type DeviceFile struct {
	Block        bool
	Major, Minor uint32
	Perm         os.FileMode
}

// DevicePath returns the path of the i-th device file below a directory of device files.
func DevicePath(dir string, i int) string { return filepath.Join(dir, strconv.Itoa(i)) }

// makeDevices makes the device files on a tmpfs that only this mount namespace has. They belong to
// the node's root, because in a user namespace the owners of the host's files are nobody. All other
// file systems of a node are mounted without devices, so that it cannot make files itself.
func (o *Overlay) makeDevices() error {
	if len(o.Devices) == 0 {
		return nil
	}
	if err := os.MkdirAll(o.DevicesAt, 0o711); err != nil {
		return err
	}
	err := unix.Mount("orrery", o.DevicesAt, "tmpfs", unix.MS_NOSUID|unix.MS_NOEXEC, "mode=711,size=64k")
	if err != nil {
		return fmt.Errorf("tmpfs on %s: %w", o.DevicesAt, err)
	}
	for i, d := range o.Devices {
		path, kind := DevicePath(o.DevicesAt, i), uint32(unix.S_IFCHR)
		if d.Block {
			kind = unix.S_IFBLK
		}
		if err := unix.Mknod(path, kind, int(unix.Mkdev(d.Major, d.Minor))); err != nil {
			return &os.PathError{Op: "mknod", Path: path, Err: err}
		}
		if err := os.Chmod(path, d.Perm); err != nil {
			return err
		}
		if err := os.Chown(path, o.IDs.First, o.IDs.First); err != nil {
			return err
		}
	}
	return nil
}
