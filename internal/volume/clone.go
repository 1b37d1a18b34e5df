package volume

import (
	"context"
	"errors"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"orrery/internal/host"
)

// How says how a tree was cloned.
type How string

// The ways to clone, the cheapest first.
const (
	Subvolume How = "subvolume" // a snapshot of a btrfs subvolume: at once, whatever its size
	Reflink   How = "reflink"   // each file shares its blocks with the one that it was cloned from (FICLONE)
	Copied    How = "copy"
)

// A Made clone is how it was cloned, and what is not in it, and why.
type Made struct {
	How  How
	Left []string
}

// Clone makes a copy of a directory tree in which nobody writes, copy-on-write where the file
// system can. It is whole, or not there at all; what a killed run left is replaced. The directory
// above it must be there.
func Clone(ctx context.Context, from, to string) (m Made, err error) {
	err = whole(from, to, func(fresh string) error {
		if canSnapshot(from, filepath.Dir(fresh)) {
			m.How = Subvolume
			return snapshot(ctx, from, fresh)
		}
		c := &Copying{from: from, to: fresh, unshared: map[uint64]bool{}}
		err := c.open()
		if err == nil {
			_, err = c.round(ctx, round{still: true})
			c.tell()
			m = c.Made
		}
		return errors.Join(err, c.Close())
	})
	return m, err
}

// Still does something while all who write into a tree stand still, and lets them go on whatever becomes of it.
type Still func(ctx context.Context, do func(context.Context) error) error

// CloneLive is Clone for a tree in which nodes write: they stand still only for what cannot be done before.
func CloneLive(ctx context.Context, from, to string, still Still) (m Made, err error) {
	err = whole(from, to, func(fresh string) error {
		c, err := Begin(ctx, from, fresh)
		if err != nil {
			return err
		}
		err = still(ctx, c.Finish)
		m = c.Made
		return errors.Join(err, c.Close())
	})
	return m, err
}

// whole makes a tree under another name, waits until it is on disk, and renames it.
func whole(from, to string, make func(fresh string) error) error {
	fresh := freshName(to)
	if err := Erase(fresh); err != nil {
		return err
	}
	err := make(fresh)
	if err == nil {
		err = Sync(fresh)
	}
	if err == nil {
		err = os.Rename(fresh, to)
	}
	if err != nil {
		return Uncopied(from, errors.Join(err, Erase(fresh)))
	}
	return nil
}

// freshName is the name under which a directory is made.
func freshName(path string) string {
	return filepath.Join(filepath.Dir(path), "."+filepath.Base(path)+"-new")
}

// Sync waits until the file system of a directory is on disk.
func Sync(dir string) error {
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer f.Close()
	if err := unix.Syncfs(int(f.Fd())); err != nil {
		return &os.PathError{Op: "syncfs", Path: dir, Err: err}
	}
	return nil
}

// run runs a program of the host.
func run(ctx context.Context, args ...string) error {
	return host.Local{Name: "host"}.Run(ctx, host.Command{Args: args, Env: []string{"LC_ALL=C"}})
}
