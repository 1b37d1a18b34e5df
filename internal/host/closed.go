package host

import (
	"context"
	"crypto/rand"
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"orrery/internal/tree"

	"golang.org/x/sys/unix"
)

// LockSite takes the lock of a site, and denies other users of this host access to its files.
func (d Dirs) LockSite(ctx context.Context, site string, by Holder) (*Lock, error) {
	l, err := TakeLock(ctx, d.Lock(site), by)
	if err != nil {
		return nil, err
	}
	if err := d.MakePrivate(site); err != nil {
		l.Release()
		return nil, err
	}
	return l, nil
}

// RemoveSite removes the directory of a site that has ended. It renames the directory first, so
// that the site's lock goes with it in one step. A process that waits for that lock then starts
// with a new directory.
func (d Dirs) RemoveSite(site string) error {
	left, err := filepath.Glob(d.Site(removedPrefix + "*"))
	if err != nil {
		return err
	}
	for _, dir := range left {
		_ = tree.RemoveAll(dir) // left by a run that was killed, or that is removing it now
	}
	away := d.Site(removedPrefix + rand.Text())
	err = os.Rename(d.Site(site), away)
	if err == nil {
		err = tree.RemoveAll(away)
		for range 10 { // a process that opened the directory before may have created a lock in it since
			if !errors.Is(err, unix.ENOTEMPTY) {
				break
			}
			err = tree.RemoveAll(away)
		}
	}
	if errors.Is(err, fs.ErrNotExist) { // it was gone, or another process removed it at the same time
		return nil
	}
	return err
}

// removedPrefix is the prefix of names of directories of sites that have ended. No site has such a name.
const removedPrefix = ".gone-"

// MakePrivate denies other users of this host access to the files of a site, and to those that all sites
// share. It also closes what an earlier version left open.
//
// The root user of a node is one of these users. LXC mounts what the node sees from within the
// node's own user namespace. So a user who knows the path can traverse it to the node's directory,
// but cannot list it. The directory itself is accessible only to its node's root (package lxc sees
// to that), and what is beside the path only to root.
func (d Dirs) MakePrivate(site string) error {
	for _, dir := range []string{d.State, filepath.Join(d.State, "sites"), d.Site(site), d.Nodes(site)} {
		if err := ensureDir(dir, 0o711); err != nil {
			return err
		}
	}
	// bundles and a mirror are for other users to read
	for _, name := range []string{"slots", "log", "mirror-key", "secret-files"} {
		if err := chmodPrivate(filepath.Join(d.State, name)); err != nil {
			return err
		}
	}
	entries, err := os.ReadDir(d.Site(site))
	if err != nil {
		return err
	}
	for _, e := range entries {
		path := filepath.Join(d.Site(site), e.Name())
		if path == d.Nodes(site) || e.Type()&fs.ModeSymlink != 0 {
			continue
		}
		if err := chmodPrivate(path); err != nil {
			return err
		}
	}
	return ensureDir(d.Run, 0o700) // root mounts the parts that nodes see
}

// ensureDir sets the mode of a directory, and creates it if it is missing.
func ensureDir(dir string, ensureDir fs.FileMode) error {
	if err := os.MkdirAll(dir, ensureDir); err != nil {
		return err
	}
	info, err := os.Stat(dir)
	if err != nil || info.Mode().Perm() == ensureDir {
		return err
	}
	return os.Chmod(dir, ensureDir)
}

// chmodPrivate removes the permissions of group and others from a file or directory. It ignores a missing
// file, which may have been removed since it was listed.
func chmodPrivate(path string) error {
	info, err := os.Lstat(path)
	if err == nil && info.Mode().Perm()&0o077 != 0 && info.Mode()&fs.ModeSymlink == 0 {
		err = os.Chmod(path, info.Mode().Perm()&^0o077|info.Mode()&(fs.ModeSetuid|fs.ModeSetgid|fs.ModeSticky))
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}
