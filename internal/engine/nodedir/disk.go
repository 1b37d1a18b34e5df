package nodedir

import (
	"errors"
	"io"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"

	"orrery/internal/image/foreign"
	"orrery/internal/problem"
	"orrery/internal/site"
	"orrery/internal/tree"
)

// What a node that boots a disk of others has in the place of a private layer. It is kept, copied
// and removed as that is.
const (
	overlay = "disk.qcow2" // what it has written
	vars    = "vars.fd"    // what its firmware keeps
	visited = "visited"    // the host has been in it: it has its keys
)

// The firmware for site.UEFI, where the package ovmf has it: its code, and what it begins with.
const (
	FirmwareCode = "/usr/share/OVMF/OVMF_CODE_4M.fd"
	firmwareVars = "/usr/share/OVMF/OVMF_VARS_4M.fd"
)

// beginDisk makes an overlay in which nothing is yet, over the image in the store.
func (m making) beginDisk() error {
	base, disk, err := m.of.Store.OpenDisk(m.r.Base)
	if err != nil {
		return err
	}
	defer base.Close()
	blank := func(f *os.File) error { return foreign.Blank(f, disk.Size) }
	if m.of.ByHeader {
		blank = func(f *os.File) error { return foreign.Over(f, disk.Size, disk.Format) }
	}
	if err := makeFile(m.own(overlay), blank); err != nil {
		return err
	}
	if m.r.Disk.Firmware != site.UEFI {
		return nil
	}
	from, err := os.Open(firmwareVars)
	if errors.Is(err, fs.ErrNotExist) {
		return NoFirmware(m.r.Name)
	}
	if err != nil {
		return err
	}
	defer from.Close()
	return makeFile(m.own(vars), func(f *os.File) error {
		_, err := io.Copy(f, from)
		return err
	})
}

// NoFirmware says that a host has none for site.UEFI.
func NoFirmware(node string) *problem.Problem {
	return problem.New(problem.Unable, "node %s boots by UEFI, for which this host has no firmware", node).
		At(firmwareVars).
		Try(`install the package ovmf; or write firmware = "bios", if the image boots by that`)
}

func makeFile(path string, fill func(*os.File) error) error {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	if err := fill(f); err != nil {
		return errors.Join(err, f.Close())
	}
	return f.Close()
}

// own is a file of a node that boots a disk.
func (d Dir) own(name string) string { return d.Private() + "/" + name }

// OpenDisk opens what a node has written to its disk. Whoever may have taken over QEMU may have
// written the header, too: it is looked at, and QEMU does not go by it.
func (d Dir) OpenDisk() (*os.File, error) {
	return d.openDisk(func(f *os.File, bytesIn int64) (*foreign.Disk, error) {
		return foreign.Inspect(overlay, f, bytesIn)
	})
}

// CheckDisk does so for a QEMU that goes by the header (Nodes.ByHeader): that names nothing but the
// image of a format that is under it.
func (d Dir) CheckDisk(format string) error {
	f, err := d.openDisk(func(f *os.File, bytesIn int64) (*foreign.Disk, error) {
		return foreign.InspectOver(f, bytesIn, format)
	})
	if err != nil {
		return err
	}
	return f.Close()
}

// DiskIn is that file where the private layer is mounted.
func DiskIn(private string) string { return private + "/" + overlay }

func (d Dir) openDisk(inspect func(f *os.File, bytesIn int64) (*foreign.Disk, error)) (*os.File, error) {
	f, err := openOwn(d.own(overlay))
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err == nil {
		_, err = inspect(f, info.Size())
	}
	if err != nil {
		return nil, errors.Join(problem.New(problem.Failed, "the disk of the node is damaged").At(f.Name()).Because(err).
			Try("orrery snapshot revert or orrery restore give it a former one; orrery down and orrery up make it anew"),
			f.Close())
	}
	return f, nil
}

// OpenVars opens what the firmware of a node keeps.
func (d Dir) OpenVars() (*os.File, error) { return openOwn(d.own(vars)) }

// openOwn opens a file for writing that may have come out of an archive: a link or a device is an error.
func openOwn(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDWR|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_NOCTTY, 0)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = &os.PathError{Op: "open", Path: path, Err: tree.ErrNotRegular}
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// HasDisk reports whether a node boots a disk of others. Its record says so: in a private layer,
// the node itself may have files of any name.
func (d Dir) HasDisk() bool {
	r, err := d.Read()
	return err == nil && r.Imported()
}

// Visited reports whether the host has been in a node that boots a disk since that was made: then
// the guest has its keys.
func (d Dir) Visited() bool {
	_, err := os.Lstat(d.own(visited))
	return err == nil
}

// Visit records it.
func (d Dir) Visit() error { return os.WriteFile(d.own(visited), nil, 0o600) }
