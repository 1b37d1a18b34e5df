package volume

import (
	"context"
	"errors"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"orrery/internal/host"
	"orrery/internal/problem"
)

// How says how a tree was cloned.
type How string

// The ways to clone, the cheapest first.
const (
	Subvolume How = "subvolume" // a snapshot of a btrfs subvolume: at once, whatever its size
	Reflink   How = "reflink"   // each file shares its blocks with the one that it was cloned from (FICLONE)
	Copied    How = "copy"
)

// Clone makes a copy of a directory tree in which nobody writes, copy-on-write where the file system can. It is whole, or not
// there at all; what a killed run left is replaced. The directory above it must be there.
func Clone(ctx context.Context, from, to string) (How, error) {
	how := howTo(from, filepath.Dir(to))
	return how, whole(from, to, func(fresh string) error {
		if how == Subvolume {
			return snapshot(ctx, from, fresh)
		}
		return copyTree(ctx, from, fresh)
	})
}

// CloneLive is Clone for a tree in which a node writes: the node stands still, from freeze to thaw, only for what cannot be
// done before. Whoever is frozen is thawed, whatever goes wrong.
func CloneLive(ctx context.Context, from, to string, freeze, thaw func() error) (How, error) {
	var how How
	return how, whole(from, to, func(fresh string) error {
		c, err := Begin(ctx, from, fresh)
		if err != nil {
			return err
		}
		how = c.How
		if err := freeze(); err != nil {
			return errors.Join(err, thaw())
		}
		err = c.Finish(ctx)
		return errors.Join(err, thaw())
	})
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
		err = errors.Join(err, Erase(fresh))
		return problem.New(problem.Failed, "%s cannot be copied to %s", from, to).Because(err)
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

// howTo gives the best way to clone a tree into a directory.
func howTo(from, dir string) How {
	switch {
	case canSnapshot(from, dir):
		return Subvolume
	case canReflink(from, dir):
		return Reflink
	}
	return Copied
}

// copyTree copies with cp(1), which keeps all that a file can have, shares blocks where that can be done, and lets holes be holes.
func copyTree(ctx context.Context, from, to string) error {
	return run(ctx, "cp", "-dR", "--preserve=mode,ownership,timestamps,links,xattr", "--reflink=auto", "--sparse=auto", "-T", "--", from, to)
}

// run runs a program of the host.
func run(ctx context.Context, args ...string) error {
	return host.Local{Name: "host"}.Run(ctx, host.Command{Args: args, Env: []string{"LC_ALL=C"}})
}

// canReflink tries with one file of the tree. A tree without any needs none of it.
func canReflink(from, dir string) bool {
	sample := firstFile(from)
	if sample == "" {
		return false
	}
	source, err := os.Open(sample)
	if err != nil {
		return false
	}
	defer source.Close()
	try, err := os.CreateTemp(dir, ".reflink-*")
	if err != nil {
		return false
	}
	defer os.Remove(try.Name()) //nolint:errcheck // nothing is in it
	defer try.Close()
	return unix.IoctlFileClone(int(try.Fd()), int(source.Fd())) == nil
}

// firstFile finds a regular file that is not empty.
func firstFile(root string) string {
	found := ""
	_ = filepath.WalkDir(root, func(path string, e os.DirEntry, err error) error {
		if err != nil || !e.Type().IsRegular() {
			return nil //nolint:nilerr // what cannot be read is no sample
		}
		if info, err := e.Info(); err == nil && info.Size() > 0 {
			found = path
			return filepath.SkipAll
		}
		return nil
	})
	return found
}
