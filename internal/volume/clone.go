package volume

import (
	"context"
	"errors"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"orrery/internal/host"
)

// CopyMethod is the way in which a tree was cloned.
type CopyMethod string

// The ways to clone, the cheapest first.
const (
	Subvolume CopyMethod = "subvolume" // a snapshot of a btrfs subvolume: instant, whatever its size
	Reflink   CopyMethod = "reflink"   // each file shares its blocks with its original (FICLONE)
	Copied    CopyMethod = "copy"
)

// CopyResult describes a clone: how it was made, and what was left out and why.
type CopyResult struct {
	Method  CopyMethod
	Skipped []string
}

// Clone copies a directory tree in which no process writes, copy-on-write if the file system can.
// The copy is either complete or does not exist. Clone replaces what a killed run left. The parent
// directory must exist.
func Clone(ctx context.Context, from, to string) (m CopyResult, err error) {
	err = makeAtomically(from, to, func(fresh string) error {
		if canSnapshot(from, filepath.Dir(fresh)) {
			m.Method = Subvolume
			return snapshot(ctx, from, fresh)
		}
		c := &Copying{from: from, to: fresh, unshared: map[uint64]bool{}}
		err := c.open()
		if err == nil {
			_, err = c.round(ctx, round{still: true})
			c.recordMethod()
			m = c.CopyResult
		}
		return errors.Join(err, c.Close())
	})
	return m, err
}

// FreezeFunc runs do while all writers of a tree are frozen, and lets them continue whatever happens.
type FreezeFunc func(ctx context.Context, do func(context.Context) error) error

// CloneLive is like Clone for a tree in which nodes write. The nodes are frozen only for the work
// that cannot be done before.
func CloneLive(ctx context.Context, from, to string, still FreezeFunc) (m CopyResult, err error) {
	err = makeAtomically(from, to, func(fresh string) error {
		c, err := StartCopy(ctx, from, fresh)
		if err != nil {
			return err
		}
		err = still(ctx, c.Finish)
		m = c.CopyResult
		return errors.Join(err, c.Close())
	})
	return m, err
}

// makeAtomically makes a tree under another name, waits until it is on disk, and renames it.
func makeAtomically(from, to string, make func(fresh string) error) error {
	fresh := tempName(to)
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
		return CopyProblem(from, errors.Join(err, Erase(fresh)))
	}
	return nil
}

// tempName returns the name under which a directory is made.
func tempName(path string) string {
	return filepath.Join(filepath.Dir(path), "."+filepath.Base(path)+"-new")
}

// Sync waits until the file system of a directory is written to disk.
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

// run runs a program on the host.
func run(ctx context.Context, args ...string) error {
	return host.Local{Name: "host"}.Run(ctx, host.Command{Args: args, Env: []string{"LC_ALL=C"}})
}
