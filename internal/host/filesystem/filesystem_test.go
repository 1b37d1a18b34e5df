package filesystem

import (
	"context"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

// TestRead: a directory that does not exist yet has no file system; the nearest one is that of its parent.
func TestRead(t *testing.T) {
	dir := t.TempDir()
	at, ok := Read(t.Context(), dir)
	if !ok || at.Size() <= 0 || at.Used < 0 || at.Free < 0 {
		t.Errorf("%+v, %v", at, ok)
	}
	if u, ok := Read(t.Context(), filepath.Join(dir, "not", "yet")); ok {
		t.Errorf("a missing directory: %+v", u)
	}
	if later, ok := ReadNearest(t.Context(), filepath.Join(dir, "not", "yet")); !ok || !later.Same(at) {
		t.Errorf("%+v, %v; its parent is on %+v", later, ok, at)
	}
	if none, ok := Read(t.Context(), "/proc"); ok {
		t.Errorf("a file system without a size: %+v", none)
	}
}

// TestReserved: what only root may fill counts as used.
func TestReserved(t *testing.T) {
	u := Of(&unix.Statfs_t{Bsize: 10, Blocks: 100, Bfree: 30, Bavail: 20})
	if u.Used != 700 || u.Free != 200 || u.Size() != 900 {
		t.Errorf("%+v", u)
	}
}

// TestSilent: a file system that does not answer delays no caller.
func TestSilent(t *testing.T) {
	before := statfs
	answer := make(chan struct{})
	t.Cleanup(func() { close(answer); statfs = before })
	statfs = func(string, *unix.Statfs_t) error { <-answer; return unix.EIO }
	ctx, stop := context.WithCancel(t.Context())
	stop()
	if u, ok := Read(ctx, "/"); ok {
		t.Errorf("%+v", u)
	}
}

// TestSilentRoot: the walk to the parents ends, also for relative paths.
func TestSilentRoot(t *testing.T) {
	before := statfs
	t.Cleanup(func() { statfs = before })
	statfs = func(string, *unix.Statfs_t) error { return unix.ENOENT }
	for _, dir := range []string{"/a/b", "a/b", ""} {
		if u, ok := ReadNearest(t.Context(), dir); ok {
			t.Errorf("%s: %+v", dir, u)
		}
	}
}
