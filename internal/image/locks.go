package image

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"orrery/internal/host"
)

// locks is a directory with a lock for each digest of a layer or an imported file. It is held alone
// to build, receive or remove, and shared to read or to build on a layer.
type locks struct{ dir string }

// of returns the path of a lock.
func (l locks) of(digest string) string { return filepath.Join(l.dir, digest) }

// layer waits for the lock of a layer.
func (l locks) layer(ctx context.Context, digest string, how host.LockMode) (*host.Lock, error) {
	return host.WaitLock(ctx, l.of(digest), how, "the lock of layer "+digest)
}

// imported waits for the lock of an imported file.
func (l locks) imported(ctx context.Context, digest string) (*host.Lock, error) {
	return host.WaitLock(ctx, l.of(digest), host.Exclusive, "the lock of the imported file "+digest)
}

// forget removes a lock that this process holds.
func (l locks) forget(digest string) error {
	if err := os.Remove(l.of(digest)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// partialSuffix is the suffix of a file that has not been received completely.
const partialSuffix = ".new"

// sweep removes a directory's entries whose digests are gone, except those that another process has
// locked. It calls remove with the lock held.
func (l locks) sweep(dir string, gone func(digest string) bool, remove func(at, digest string) error) error {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	for _, e := range entries {
		digest := strings.TrimSuffix(e.Name(), partialSuffix)
		if !IsDigest(digest) || !gone(digest) {
			continue
		}
		if _, err := l.ifFree(digest, func() error { return remove(filepath.Join(dir, e.Name()), digest) }); err != nil {
			return err
		}
	}
	return nil
}

// ifFree calls do with the lock held alone, or returns false if another process holds it.
func (l locks) ifFree(digest string, do func() error) (bool, error) {
	held, err := host.TryLock(l.of(digest), host.Exclusive)
	if errors.Is(err, host.ErrHeld) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	defer held.Release()
	return true, do()
}
