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

// Files that a node booting a foreign disk image has in place of a private layer. They are kept,
// copied and removed like one.
const (
	overlay     = "disk.qcow2" // what the node has written to its disk
	vars        = "vars.fd"    // variables of the firmware
	visitedFile = "visited"    // the host has logged in, so the guest has its SSH host keys
)

// The firmware for site.UEFI, in the paths of package ovmf: the code and the initial variables.
const (
	FirmwareCode = "/usr/share/OVMF/OVMF_CODE_4M.fd"
	firmwareVars = "/usr/share/OVMF/OVMF_VARS_4M.fd"
)

// createDisk makes an empty overlay over the image in the store.
func (m newNode) createDisk() error {
	base, disk, err := m.of.Store.OpenDisk(m.r.Base)
	if err != nil {
		return err
	}
	defer base.Close()
	blank := func(f *os.File) error { return foreign.CreateEmpty(f, disk.Size) }
	if m.of.ByHeader {
		blank = func(f *os.File) error { return foreign.CreateOverlay(f, disk.Size, disk.Format) }
	}
	if err := makeFile(m.ownFile(overlay), blank); err != nil {
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
	return makeFile(m.ownFile(vars), func(f *os.File) error {
		_, err := io.Copy(f, from)
		return err
	})
}

// NoFirmware returns the problem that a host has no firmware for site.UEFI.
func NoFirmware(node string) *problem.Problem {
	return problem.New(problem.Unable, "node %s boots by UEFI, but this host has no UEFI firmware", node).
		At(firmwareVars).
		Try(`install the package ovmf; or write firmware = "bios", if the image boots by BIOS`)
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

// ownFile returns the path of one of the files that a node with a disk has.
func (d Dir) ownFile(name string) string { return d.Private() + "/" + name }

// OpenDisk opens the overlay that the node has written to. It inspects the header, which an
// attacker who took over QEMU may have changed. QEMU itself does not rely on the header.
func (d Dir) OpenDisk() (*os.File, error) {
	return d.openDisk(func(f *os.File, bytesIn int64) (*foreign.Disk, error) {
		return foreign.Inspect(overlay, f, bytesIn)
	})
}

// CheckDisk inspects the overlay for a QEMU that relies on the header (Nodes.ByHeader). The header
// may name only the image below it, of the given format.
func (d Dir) CheckDisk(format string) error {
	f, err := d.openDisk(func(f *os.File, bytesIn int64) (*foreign.Disk, error) {
		return foreign.InspectOverlay(f, bytesIn, format)
	})
	if err != nil {
		return err
	}
	return f.Close()
}

// OverlayPath returns the path of the overlay below the mount point of the private layer.
func OverlayPath(private string) string { return private + "/" + overlay }

func (d Dir) openDisk(inspect func(f *os.File, bytesIn int64) (*foreign.Disk, error)) (*os.File, error) {
	f, err := openOwn(d.ownFile(overlay))
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err == nil {
		_, err = inspect(f, info.Size())
	}
	if err != nil {
		return nil, errors.Join(problem.New(problem.Failed, "the disk of the node is damaged").At(f.Name()).Because(err).
			Try("orrery snapshot revert or orrery restore restores an earlier one; orrery down and orrery up recreate it"),
			f.Close())
	}
	return f, nil
}

// OpenVars opens the firmware variables of a node.
func (d Dir) OpenVars() (*os.File, error) { return openOwn(d.ownFile(vars)) }

// openOwn opens a file for writing that may have come out of an archive. It returns an error for a
// link or a device.
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

// HasDisk reports whether a node boots a foreign disk image. Only the record can say so, because
// the node can create files of any name in its private layer.
func (d Dir) HasDisk() bool {
	r, err := d.Read()
	return err == nil && r.Imported()
}

// Visited reports whether the host has logged in to a node with a disk since that disk was made.
// Then the guest has its SSH host keys.
func (d Dir) Visited() bool {
	_, err := os.Lstat(d.ownFile(visitedFile))
	return err == nil
}

// SetVisited records that the host has logged in to the node.
func (d Dir) SetVisited() error { return os.WriteFile(d.ownFile(visitedFile), nil, 0o600) }
