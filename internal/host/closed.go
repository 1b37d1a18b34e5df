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

// TakeSite takes the lock of a site, and closes to other users what is kept here of it.
func (d Dirs) TakeSite(ctx context.Context, site string, by Holder) (*Lock, error) {
	l, err := TakeLock(ctx, d.Lock(site), by)
	if err != nil {
		return nil, err
	}
	if err := d.Close(site); err != nil {
		l.Release()
		return nil, err
	}
	return l, nil
}

// RemoveSite removes what is kept here of a site that has ended. It goes away in one step with the
// site's lock, so that whoever waits for that begins in a directory of its own.
func (d Dirs) RemoveSite(site string) error {
	left, err := filepath.Glob(d.Site(gone + "*"))
	if err != nil {
		return err
	}
	for _, dir := range left {
		_ = tree.RemoveAll(dir) // by a program that was killed, or is at it now
	}
	away := d.Site(gone + rand.Text())
	err = os.Rename(d.Site(site), away)
	if err == nil {
		err = tree.RemoveAll(away)
		for range 10 { // another process may have opened the directory before, and has made a lock in it since
			if !errors.Is(err, unix.ENOTEMPTY) {
				break
			}
			err = tree.RemoveAll(away)
		}
	}
	if errors.Is(err, fs.ErrNotExist) { // it was gone, or another process has helped to remove it
		return nil
	}
	return err
}

// gone is what names of directories of sites that have ended begin with; no site is named so.
const gone = ".gone-"

// Close keeps the other users of this host from what is kept here of a site, and of all sites, also
// what an earlier version has left open.
//
// The root of a node is one of these users. LXC mounts what the node sees from within the node's
// own namespace, so the way to the node's directory can be gone by whoever knows it, but not
// listed. The directory itself only its node's root may enter (package lxc sees to that), and all
// that is beside the way nobody.
func (d Dirs) Close(site string) error {
	for _, dir := range []string{d.State, filepath.Join(d.State, "sites"), d.Site(site), d.Nodes(site)} {
		if err := mode(dir, 0o711); err != nil {
			return err
		}
	}
	for _, name := range []string{"slots", "log", "mirror-key"} { // bundles of the lab and a mirror are for others to read
		if err := shut(filepath.Join(d.State, name)); err != nil {
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
		if err := shut(path); err != nil {
			return err
		}
	}
	return mode(d.Run, 0o700) // what of it nodes see is mounted by root
}

// mode makes a directory, if it is not there, and gives it a mode.
func mode(dir string, mode fs.FileMode) error {
	if err := os.MkdirAll(dir, mode); err != nil {
		return err
	}
	info, err := os.Stat(dir)
	if err != nil || info.Mode().Perm() == mode {
		return err
	}
	return os.Chmod(dir, mode)
}

// shut takes from a file or directory what others may do with it. What is not there is no error: it
// may be gone since it was listed.
func shut(path string) error {
	info, err := os.Lstat(path)
	if err == nil && info.Mode().Perm()&0o077 != 0 && info.Mode()&fs.ModeSymlink == 0 {
		err = os.Chmod(path, info.Mode().Perm()&^0o077|info.Mode()&(fs.ModeSetuid|fs.ModeSetgid|fs.ModeSticky))
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}
