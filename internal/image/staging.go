package image

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"orrery/internal/host"
	"orrery/internal/image/access"
	"orrery/internal/image/rootfs"
	"orrery/internal/site/spec"
	"orrery/internal/tree"
)

// A staging is where a layer is built: a directory that the builder's lock on the digest protects.
// If no process holds the lock, a killed builder left the directory, and the next builder or GC
// clears it.
type staging struct {
	store  *Store
	digest string
	dir    string // in the store, so that a rename can move it into place
	lock   *host.Lock
	way    *access.BuildProxy // access to the network from the scratch; nil until it is known
}

func newStaging(s *Store, digest string) *staging {
	return &staging{store: s, digest: digest, dir: filepath.Join(s.stagings, digest)}
}

// stage returns an empty staging directory with the digest's lock. It returns nil if the store has
// the layer, even if another process has just built it.
func (s *Store) stage(ctx context.Context, l *spec.Layer) (*staging, error) {
	if s.has(l.Digest) {
		return nil, nil
	}
	if err := s.createPrivate(); err != nil {
		return nil, err
	}
	held, err := s.locks.layer(ctx, l.Digest, host.Exclusive)
	if err != nil {
		return nil, err
	}
	if s.has(l.Digest) {
		held.Release()
		return nil, nil
	}
	g := newStaging(s, l.Digest)
	g.lock = held
	err = g.clear()
	if err == nil {
		err = removeTree(filepath.Join(s.Dir, l.Digest)) // without layer.json it is not a layer
	}
	if err == nil {
		err = os.MkdirAll(g.dir, 0o700)
	}
	if err != nil {
		held.Release()
		return nil, err
	}
	return g, nil
}

// clear removes everything a build of the digest may have left: its processes, control groups,
// mount points and files.
func (g *staging) clear() error {
	room := containerDir(g.store, g.digest)
	killContainer(containerName(g.store, g.digest)) // a killed builder may have left it
	for _, dir := range []string{g.dir, room} {
		if err := removeTree(dir); err != nil {
			return err
		}
	}
	return nil
}

// abandon removes what a killed build of the digest has left.
func (g *staging) abandon() error {
	err := g.clear()
	if err == nil && !g.store.has(g.digest) {
		if err = removeTree(filepath.Join(g.store.Dir, g.digest)); err == nil {
			err = g.forget()
		}
	}
	if err != nil {
		return fmt.Errorf("remove the leftovers of a killed build of %s: %w", g.digest, err)
	}
	return nil
}

// discard removes the layer of the digest. It first moves the layer to the staging directory, so
// that no process ever sees a part of a layer.
func (g *staging) discard() error {
	if err := removeTree(g.dir); err != nil {
		return err
	}
	if err := os.Rename(filepath.Join(g.store.Dir, g.digest), g.dir); err != nil {
		return err
	}
	if err := removeTree(g.dir); err != nil {
		return err
	}
	return g.forget()
}

// forget removes the log of the build, and the lock, which this process holds.
func (g *staging) forget() error {
	if err := os.Remove(g.store.LogPath(g.digest)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return g.store.locks.forget(g.digest)
}

// close removes the staging directory with all files that commit has not moved.
func (g *staging) close() {
	g.way.Close()
	g.clear() //nolint:errcheck // the next builder or GC tries again
	g.lock.Release()
}

// commit writes the record and the manifest beside the tree, flushes everything to disk, and moves
// the layer into the store.
func (g *staging) commit(r *Record, lines manifest) error {
	if err := lines.write(filepath.Join(g.dir, "manifest.gz")); err != nil {
		return err
	}
	if err := r.write(filepath.Join(g.dir, "layer.json")); err != nil {
		return err
	}
	entries, err := os.ReadDir(g.dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if !slices.Contains([]string{"tree", "layer.json", "manifest.gz"}, e.Name()) {
			if err := removeTree(filepath.Join(g.dir, e.Name())); err != nil {
				return err
			}
		}
	}
	// One syncfs is much cheaper than an fsync of each of some ten thousand files.
	dir, err := os.Open(g.store.Dir)
	if err != nil {
		return err
	}
	defer dir.Close()
	if err := unix.Syncfs(int(dir.Fd())); err != nil {
		return &os.PathError{Op: "syncfs", Path: g.store.Dir, Err: err}
	}
	if err := os.Rename(g.dir, filepath.Join(g.store.Dir, g.digest)); err != nil {
		return err
	}
	return dir.Sync()
}

// removeTree removes a directory with its content. It unmounts what is mounted in it and never
// removes the content of mounts.
func removeTree(dir string) error {
	mounts, err := mountsIn(dir)
	if err != nil {
		return err
	}
	for _, at := range mounts {
		if err := unix.Unmount(at, unix.MNT_DETACH|unix.UMOUNT_NOFOLLOW); err != nil {
			return &os.PathError{Op: "unmount", Path: at, Err: err}
		}
	}
	return tree.RemoveAll(dir)
}

// mountsIn returns the mount points at or below a directory, the innermost first.
func mountsIn(dir string) ([]string, error) {
	all, err := rootfs.MountsOf("thread-self")
	var found []string
	for _, m := range slices.Backward(all) {
		if m.At == dir || strings.HasPrefix(m.At, dir+"/") {
			found = append(found, m.At)
		}
	}
	return found, err
}
