// Package disk makes and inspects the disks of virtual machines. It inspects them before a machine
// uses them. Disks are qcow2 and raw files, and devices of the host.
//
// What a guest has written is not trusted. Neither is an image that QEMU has had open, because a
// guest may have taken over QEMU: the image may refer to files of the host. So the format of a file
// is always given and never guessed, and this package reads the header of an image. Further checks
// are done by qemu-img, confined and with a user id of its own.
package disk

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"orrery/internal/image/foreign"
	"orrery/internal/problem"
	"orrery/internal/site"
)

// A Disk is one disk of a node.
type Disk struct {
	Path  string
	Drive site.Drive
	Node  string // the node's name, for messages
}

// Of returns a disk of a node that stores its files in dir.
func Of(node, dir string, drive site.Drive) *Disk {
	d := &Disk{Path: drive.Disk, Drive: drive, Node: node}
	if !drive.IsDevice() {
		d.Path = filepath.Join(dir, drive.Name+"."+drive.Disk)
	}
	return d
}

// failed returns a problem with the disk, or err itself if that is a problem already.
func (d *Disk) failed(err error, what string) error {
	var said *problem.Problem
	if errors.As(err, &said) {
		return err
	}
	return problem.New(problem.Failed, "node %s: disk %s %s", d.Node, d.Drive.Name, what).At(d.Path).
		Because(problem.PathErrorCause(err))
}

// refused returns the problem that a machine cannot use the disk.
func (d *Disk) refused(format string, args ...any) *problem.Problem {
	return problem.New(problem.Failed, "node %s: disk %s %s", d.Node, d.Drive.Name, fmt.Sprintf(format, args...)).
		At(d.Path)
}

// madeSuffix is the suffix of an empty file that marks a disk as made. It is beside the disk, so
// that it is copied and restored with the disk.
const madeSuffix = ".made"

// Provide creates the file of a disk unless it exists. If the file was made before and is gone,
// Provide returns a problem. To the guest, an empty disk would look as if it had never written
// anything.
func (d *Disk) Provide(ctx context.Context, filesystem bool) error {
	mark := d.Path + madeSuffix
	existing, err := exists(d.Path)
	if err != nil {
		return d.failed(err, "cannot be inspected")
	}
	made, err := exists(mark)
	switch {
	case err != nil:
		return d.failed(err, "cannot be inspected")
	case !existing && made:
		return d.refused("is missing").
			Try("restore the file, or run orrery snapshot restore; for an empty disk instead, remove %s", mark)
	case !existing:
		if err := d.createAtomically(ctx, filesystem); err != nil {
			return err
		}
	}
	if made {
		return nil
	}
	if err := createFile(mark, func(*os.File) error { return nil }); err != nil {
		return d.failed(err, "exists, but this cannot be recorded")
	}
	return nil
}

// Forget allows Provide to create a missing disk again.
func (d *Disk) Forget() error {
	if err := os.Remove(d.Path + madeSuffix); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return d.failed(err, "cannot be released")
	}
	return nil
}

func exists(path string) (bool, error) {
	_, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil, err
}

// createAtomically creates a file of the declared size, sparsely. An interrupted run never leaves a half
// made file under the final name.
func (d *Disk) createAtomically(ctx context.Context, filesystem bool) error {
	fresh := d.Path + ".new"
	err := d.create(ctx, fresh, filesystem)
	if err == nil {
		err = os.Rename(fresh, d.Path)
	}
	if err != nil {
		err = d.failed(err, "cannot be made")
		for _, half := range []string{fresh, fresh + ".raw"} {
			err = errors.Join(err, os.RemoveAll(half))
		}
		return err
	}
	return nil
}

func (d *Disk) create(ctx context.Context, at string, filesystem bool) error {
	image := d.Drive.Disk == site.QCow2
	switch {
	case image && !filesystem:
		return createFile(at, func(f *os.File) error { return foreign.CreateEmpty(f, d.Drive.Size) })
	case !image:
		if err := createFile(at, func(f *os.File) error { return f.Truncate(d.Drive.Size) }); err != nil || !filesystem {
			return err
		}
		return format(ctx, at, d.Drive.Name)
	}
	raw := at + ".raw"
	if err := os.RemoveAll(at); err != nil {
		return err
	}
	if err := createFile(raw, func(f *os.File) error { return f.Truncate(d.Drive.Size) }); err != nil {
		return err
	}
	if err := format(ctx, raw, d.Drive.Name); err != nil {
		return err
	}
	if err := runTool(ctx, qemuImg, "convert", "-q", "-f", "raw", "-O", "qcow2", raw, at); err != nil {
		return err
	}
	if err := os.Chmod(at, 0o600); err != nil {
		return err
	}
	return os.Remove(raw)
}

// createFile creates a file and removes what was at its path, because a guest may have put a link there
// before its machine had disks.
func createFile(path string, fill func(*os.File) error) error {
	if err := os.RemoveAll(path); err != nil {
		return err
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_RDWR|unix.O_CLOEXEC, 0o600)
	if err != nil {
		return err
	}
	err = fill(f)
	return errors.Join(err, f.Close())
}

// format creates an empty ext4 on a file or device. It leaves the initialization of tables to the
// guest's kernel.
func format(ctx context.Context, path, label string, options ...string) error {
	args := append([]string{"-q", "-F", "-t", "ext4", "-m", "0", "-L", label, "-E",
		"lazy_itable_init=1,lazy_journal_init=1,nodiscard"}, options...)
	return runTool(ctx, mke2fs, append(args, path)...)
}
