package snapshot

import (
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"golang.org/x/sys/unix"

	"orrery/internal/host"
)

// unprivileged makes file modes apply to the current thread even if root runs the test.
func unprivileged(t *testing.T) {
	t.Helper()
	if os.Geteuid() == 0 {
		runtime.LockOSThread() // not unlocked: the thread ends with the test
		if _, _, err := unix.RawSyscall(unix.SYS_SETFSUID, 65534, 0, 0); err != 0 {
			t.Fatal(err)
		}
	}
}

// TestFormerStays: a former directory that cannot be restored is not removed, because it is the
// only copy of the nodes' data.
//
// Promise (Data and time): Nothing is removed before its replacement is in place; a host key is on
// disk before it is used. With host.TestReplace, apply/local.TestHostKey, internal.TestJoins.
func TestFormerStays(t *testing.T) {
	dir := t.TempDir()
	if err := os.Chmod(filepath.Dir(dir), 0o755); err != nil { //nolint:gosec // so that nobody in particular gets there
		t.Fatal(err)
	}
	p := &dirSwap{Path: filepath.Join(dir, "volume")}
	for _, at := range []string{p.Path, p.stagingPath()} {
		if err := os.Mkdir(at, 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(at, 0o777); err != nil { //nolint:gosec // whoever runs the test may empty it
			t.Fatal(err)
		}
	}
	kept := filepath.Join(p.stagingPath(), "data")
	if err := os.WriteFile(kept, []byte("precious"), 0o666); err != nil { //nolint:gosec // the same
		t.Fatal(err)
	}
	var err error
	if p.Former, err = inode(p.stagingPath()); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(dir, 0o555); err != nil { //nolint:gosec // nothing in it can be renamed
		t.Fatal(err)
	}
	done := make(chan error)
	go func() {
		unprivileged(t)
		done <- p.swapBack()
	}()
	if err := <-done; err == nil {
		t.Error("it was put back")
	}
	_ = os.Chmod(dir, 0o755) //nolint:gosec // so that it can be removed
	if text, err := os.ReadFile(kept); err != nil || string(text) != "precious" {
		t.Errorf("of the former directory is left %q: %v", text, err)
	}
}

// TestSweepAside: directories that a run staged beside volumes before it was killed are removed.
// Nothing is removed while there is a record that directories were exchanged.
func TestSweepAside(t *testing.T) {
	dirs := host.Dirs{State: t.TempDir()}
	at := filepath.Join(dirs.Volumes("karoo"), "data", "store")
	p := &dirSwap{Path: at}
	beside := []string{p.stagingPath(), filepath.Join(filepath.Dir(at), "."+filepath.Base(p.stagingPath())+"-new")}
	for _, dir := range append(beside, at) {
		if err := os.MkdirAll(filepath.Join(dir, "sub"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	r := &Restore{from: &Snapshot{ID: "then", Site: "karoo"}, dirs: dirs, pairs: []*dirSwap{p}}
	if err := r.writeSwaps(); err != nil {
		t.Fatal(err)
	}
	sweep := func(stay bool) {
		t.Helper()
		if err := Sweep(dirs, "karoo"); err != nil {
			t.Error(err)
		}
		for _, dir := range beside {
			if _, err := os.Stat(dir); (err == nil) != stay {
				t.Errorf("%s: %v, and stays is %v", dir, err, stay)
			}
		}
	}
	sweep(true)
	if err := removeSwaps(dirs, "karoo"); err != nil {
		t.Fatal(err)
	}
	sweep(false)
	if _, err := os.Stat(at); err != nil {
		t.Error(err)
	}
}
