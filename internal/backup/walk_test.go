package backup

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"orrery/internal/backup/vault"
	"orrery/internal/tree"
)

// TestDeep: a path that is longer than the kernel's limit is backed up and restored. Paths beyond
// the limits are left out and reported.
func TestDeep(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "deep")
	must(t, os.MkdirAll(dir, 0o755))
	at, err := unix.Open(dir, unix.O_RDONLY|unix.O_DIRECTORY, 0)
	for range 300 {
		name := strings.Repeat("d", 60)
		must(t, errors.Join(err, unix.Mkdirat(at, name, 0o755)))
		next, badly := unix.Openat(at, name, unix.O_RDONLY|unix.O_DIRECTORY, 0)
		err = errors.Join(badly, unix.Close(at))
		at = next
	}
	must(t, errors.Join(err, unix.Mknodat(at, "leaf", unix.S_IFIFO|0o600, 0), unix.Close(at)))
	must(t, os.WriteFile(filepath.Join(dir, "shallow"), []byte("x"), 0o600))
	into, err := vault.WriteRepository(filepath.Join(t.TempDir(), "r"))
	must(t, err)
	defer into.Close()
	r, err := kept(t, into, dir, time.Now())
	must(t, err)
	again := back(t, into, r.ID)
	if want, got := listOf(t, dir), listOf(t, again); len(want) != 303 || !slices.Equal(want, got) {
		t.Errorf("%d paths were kept, %d came back", len(want), len(got))
	}
	must(t, tree.RemoveAll(again))

	bounds.Depth = 100
	defer func() { bounds.Depth = tree.DefaultBounds.Depth }()
	r, err = kept(t, into, dir, time.Now())
	must(t, err)
	if len(r.Manifest.Left) != 1 || !strings.Contains(r.Manifest.Left[0], "more than 100 nested directories") ||
		len(r.Manifest.Left[0]) > 400 {
		t.Errorf("left is %q", r.Manifest.Left)
	}
	if _, err := os.Lstat(filepath.Join(back(t, into, r.ID), "shallow")); err != nil {
		t.Error(err)
	}
	must(t, tree.RemoveAll(dir))
}

// TestDevices: a device is left out of a backup and reported, but a whiteout is backed up.
func TestDevices(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root makes devices")
	}
	dir := t.TempDir()
	must(t, unix.Mknod(filepath.Join(dir, "null"), unix.S_IFCHR|0o666, int(unix.Mkdev(1, 3))))
	must(t, unix.Mknod(filepath.Join(dir, "whiteout"), unix.S_IFCHR, 0))
	into, err := vault.WriteRepository(filepath.Join(t.TempDir(), "r"))
	must(t, err)
	defer into.Close()
	r, err := kept(t, into, dir, time.Now())
	must(t, err)
	if fmt.Sprint(r.Manifest.Left) != "[node n: null: a device]" || r.Manifest.Trees[0].Entries != 2 {
		t.Errorf("left is %q, of %d", r.Manifest.Left, r.Manifest.Trees[0].Entries)
	}
}
