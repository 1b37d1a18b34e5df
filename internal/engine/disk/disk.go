// Package disk makes the disks of virtual machines, and inspects them before a machine uses them:
// qcow2 and raw files, and devices of the host.
//
// What a guest has written is hostile, and so is an image when QEMU, which a guest may have taken
// over, has had it: it may name files of the host. So the format of a file is said and never
// guessed, the header of an image is read here, and what qemu-img looks at further, it sees alone,
// as a user that nobody else is.
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
	Node  string // whose it is, in what is told of it
}

// Of returns a disk of a node that keeps its files in a directory.
func Of(node, dir string, drive site.Drive) *Disk {
	d := &Disk{Path: drive.Disk, Drive: drive, Node: node}
	if !drive.IsDevice() {
		d.Path = filepath.Join(dir, drive.Name+"."+drive.Disk)
	}
	return d
}

// failed says what went wrong, unless that has been said.
func (d *Disk) failed(err error, what string) error {
	var said *problem.Problem
	if errors.As(err, &said) {
		return err
	}
	return problem.New(problem.Failed, "node %s: disk %s %s", d.Node, d.Drive.Name, what).At(d.Path).
		Because(problem.Reason(err))
}

// refused says why a machine does not get it.
func (d *Disk) refused(format string, args ...any) *problem.Problem {
	return problem.New(problem.Failed, "node %s: disk %s %s", d.Node, d.Drive.Name, fmt.Sprintf(format, args...)).
		At(d.Path)
}

// madeSuffix is that of the empty file which says that a disk has been made. It is beside the disk:
// whatever takes the disks of a node along, or puts former ones in their place, does so with what
// is known of them.
const madeSuffix = ".made"

// Provide makes the file of a disk unless it is there. One that was made before is not made again:
// to the guest, an empty disk in its place would look as if it had never written anything.
func (d *Disk) Provide(ctx context.Context, filesystem bool) error {
	mark := d.Path + madeSuffix
	existing, err := exists(d.Path)
	if err != nil {
		return d.failed(err, "cannot be looked at")
	}
	made, err := exists(mark)
	switch {
	case err != nil:
		return d.failed(err, "cannot be looked at")
	case !existing && made:
		return d.refused("is gone, though it was made").
			Try("put the file back, or orrery snapshot restore; for an empty disk instead, remove %s", mark)
	case !existing:
		if err := d.makeWhole(ctx, filesystem); err != nil {
			return err
		}
	}
	if made {
		return nil
	}
	if err := blank(mark, func(*os.File) error { return nil }); err != nil {
		return d.failed(err, "is there, but that cannot be written down")
	}
	return nil
}

// Forget lets the file of a disk be made anew if it is gone.
func (d *Disk) Forget() error {
	if err := os.Remove(d.Path + madeSuffix); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return d.failed(err, "cannot be let go")
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

// makeWhole makes a file, as large as it is to be for the guest, and takes no more of the host than
// what is in it. A killed run leaves none that is half made.
func (d *Disk) makeWhole(ctx context.Context, filesystem bool) error {
	fresh := d.Path + ".new"
	err := d.make(ctx, fresh, filesystem)
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

func (d *Disk) make(ctx context.Context, at string, filesystem bool) error {
	image := d.Drive.Disk == site.QCow2
	switch {
	case image && !filesystem:
		return blank(at, func(f *os.File) error { return foreign.Blank(f, d.Drive.Size) })
	case !image:
		if err := blank(at, func(f *os.File) error { return f.Truncate(d.Drive.Size) }); err != nil || !filesystem {
			return err
		}
		return format(ctx, at, d.Drive.Name)
	}
	raw := at + ".raw"
	if err := os.RemoveAll(at); err != nil {
		return err
	}
	if err := blank(raw, func(f *os.File) error { return f.Truncate(d.Drive.Size) }); err != nil {
		return err
	}
	if err := format(ctx, raw, d.Drive.Name); err != nil {
		return err
	}
	if err := ours(ctx, qemuImg, "convert", "-q", "-f", "raw", "-O", "qcow2", raw, at); err != nil {
		return err
	}
	if err := os.Chmod(at, 0o600); err != nil {
		return err
	}
	return os.Remove(raw)
}

// blank makes a file in the place of what is there: a guest may have put a link there before its
// machine had disks.
func blank(path string, fill func(*os.File) error) error {
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

// format puts an empty ext4 onto a file or device of ours. What it would write in advance, the
// guest's kernel writes as it goes along.
func format(ctx context.Context, path, label string, options ...string) error {
	args := append([]string{"-q", "-F", "-t", "ext4", "-m", "0", "-L", label, "-E",
		"lazy_itable_init=1,lazy_journal_init=1,nodiscard"}, options...)
	return ours(ctx, mke2fs, append(args, path)...)
}
