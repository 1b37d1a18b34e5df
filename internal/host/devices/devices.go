// Package devices lends devices of the host to containers.
//
// It finds the device files that a declared device means (resolve.go), refuses those that the host
// or another node uses, and records who has which (claim.go). A container gets files of its own
// with the same numbers, so that it cannot change those of the host. Numbers are resolved once, when
// the container starts. A device that the host gets later is not part of a class that was lent.
package devices

import (
	"errors"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"

	"orrery/internal/site/device"
)

// A Host has devices, and claims to them.
type Host struct {
	Dev    string // directory of the device files
	Sys    string // mount point of sysfs
	Claims string // directory with a file for each claimed device, named by its numbers

	stat func(path string) (Number, os.FileMode, error)
	busy func(path string, n Number) error // returns errBusy if the host uses a block device
}

// Local is the Host of this machine. It is the same for all state directories.
var Local = Host{Dev: "/dev", Sys: "/sys", Claims: "/run/orrery/devices", stat: statDevice, busy: openExclusively}

// A Number identifies a device for the kernel.
type Number struct {
	Block        bool
	Major, Minor uint32
}

// kind returns the name of a device's kind in sysfs.
func (n Number) kind() string {
	if n.Block {
		return "block"
	}
	return "char"
}

// A File is a device file of a container.
type File struct {
	Number
	Path   string      // in the container
	Access string      // for control groups: device.Read, device.Write or both
	Perm   os.FileMode // as on the host
}

// A Lent is a declared device with the files that the container got for it.
type Lent struct {
	device.Device
	Files []File
}

var (
	errNoDevice = errors.New("not a device")
	errBusy     = errors.New("in use")
)

// statDevice returns the number of a device file. It follows no link.
func statDevice(path string) (Number, os.FileMode, error) {
	var st unix.Stat_t
	if err := unix.Lstat(path, &st); err != nil {
		return Number{}, 0, &os.PathError{Op: "stat", Path: path, Err: err}
	}
	return numberOf(&st)
}

func numberOf(st *unix.Stat_t) (Number, os.FileMode, error) {
	kind := st.Mode & unix.S_IFMT
	if kind != unix.S_IFBLK && kind != unix.S_IFCHR {
		return Number{}, 0, errNoDevice
	}
	return Number{kind == unix.S_IFBLK, unix.Major(st.Rdev), unix.Minor(st.Rdev)}, os.FileMode(st.Mode & 0o777), nil
}

// openExclusively opens a block device as the kernel's users of whole devices do. This fails while
// it, a partition of it, or the disk that it is a partition of is mounted in any namespace, serves as swap
// or belongs to a RAID, a volume group or a device-mapper target.
func openExclusively(path string, n Number) error {
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_EXCL|unix.O_NONBLOCK|unix.O_CLOEXEC|unix.O_NOFOLLOW, 0)
	if errors.Is(err, unix.EBUSY) {
		return errBusy
	}
	if err != nil {
		return &os.PathError{Op: "open", Path: path, Err: err}
	}
	defer unix.Close(fd) //nolint:errcheck // it was only opened
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return os.NewSyscallError("fstat", err)
	}
	if now, _, err := numberOf(&st); err != nil || now != n {
		return &os.PathError{Op: "open", Path: path, Err: fs.ErrNotExist} // it has just been replaced
	}
	return nil
}
