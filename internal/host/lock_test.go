package host

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/sys/unix"

	"orrery/internal/host/waits"
	"orrery/test/need"
)

// TestLocksAreClosed checks that only root can open a lock file, even one that existed before. Any
// user who could open it could lock it.
//
// Promise (Other users of the host): They cannot stop a run by locks or by processes that pose as a
// monitor. With host.TestHoldInMemoryNeedsNoOpenDirectory, engine/lxc.TestMonitors.
func TestLocksAreClosed(t *testing.T) {
	old := unix.Umask(0)
	defer unix.Umask(old)
	dir := t.TempDir()
	former := filepath.Join(dir, "former")
	if err := os.WriteFile(former, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{former, filepath.Join(dir, "sites/s/lock")} {
		l, err := TakeLock(t.Context(), path, Holder{Who: "me"})
		if err != nil {
			t.Fatal(err)
		}
		closed(t, path)
		l.Release()
	}
	run := filepath.Join(dir, "run")
	unlock, err := lockSettings(t.Context(), run)
	if err != nil {
		t.Fatal(err)
	}
	unlock()
	closed(t, filepath.Join(run, "settings.lock"))
}

func closed(t *testing.T, path string) {
	t.Helper()
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%s: %v, %v", path, info, err)
	}
}

// TestHoldInMemoryNeedsNoOpenDirectory checks that a user who locks the parent directory, such as
// /run, blocks no one.
func TestHoldInMemoryNeedsNoOpenDirectory(t *testing.T) {
	above, err := os.MkdirTemp("/dev/shm", "orrery-test-") // a tmpfs, so that the test need not mount one
	if err != nil {
		t.Skip(err)
	}
	defer os.RemoveAll(above)
	stranger, err := os.Open(above)
	if err != nil {
		t.Fatal(err)
	}
	defer stranger.Close()
	if err := unix.Flock(int(stranger.Fd()), unix.LOCK_EX); err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() {
		letGo, err := EnsureInMemory(t.Context(), filepath.Join(above, "orrery"))
		if err == nil {
			letGo()
		}
		done <- err
	}()
	select {
	case err := <-done:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(time.Minute):
		t.Error("it waits for a lock that anybody can take")
	}
	closed(t, filepath.Join(above, ".orrery.lock"))
}

// TestLockOnFullDisk checks that the lock of a site can be taken on a full disk, so that a user can
// make room.
func TestLockOnFullDisk(t *testing.T) {
	need.Integration(t)
	small := t.TempDir()
	if err := unix.Mount("orrery-test", small, "tmpfs", 0, "size=4k"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Unmount(small, unix.MNT_DETACH) })
	if err := os.WriteFile(filepath.Join(small, "ballast"), make([]byte, 4096), 0o600); err != nil {
		t.Fatal(err)
	}
	l, err := TakeLock(t.Context(), filepath.Join(small, "lock"), Holder{Who: "me"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := TakeLock(t.Context(), filepath.Join(small, "lock"), Holder{Who: "you"}); err == nil {
		t.Error("two have it")
	}
	l.Release()
}

// TestLock checks that a lock excludes others, that waiting ends with the context, and that a lock
// on a removed file is worthless. It also checks that the content of a locked file stays, except
// for the holder's name.
func TestLock(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	first, err := TryLock(path, Exclusive)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := TryLock(path, Shared); !errors.Is(err, ErrHeld) {
		t.Errorf("a held lock gives %v", err)
	}
	ctx, cancel := context.WithTimeoutCause(t.Context(), 120*time.Millisecond, errors.New("enough"))
	defer cancel()
	if _, err := WaitLock(ctx, path, Exclusive, "the lock of a test"); !strings.Contains(fmt.Sprint(err),
		"the lock of a test: ") || !strings.HasSuffix(fmt.Sprint(errors.Unwrap(err)), "enough") {
		t.Errorf("waiting ends with %v", err)
	}
	// A lock whose file was removed by its holder does not count.
	os.Remove(path)
	first.Release()
	second, err := TryLock(path, Shared)
	if err != nil {
		t.Fatal(err)
	}
	third, err := TryLock(path, Shared)
	if err != nil {
		t.Fatal(err)
	}
	second.Release()
	third.Release()
	if err := os.WriteFile(path, []byte("data"), 0o600); err != nil {
		t.Fatal(err)
	}
	if second, err = TryLock(path, Exclusive); err != nil || IsLocked(filepath.Join(t.TempDir(), "none")) ||
		!IsLocked(path) {
		t.Fatal(err)
	}
	second.Release()
	if text, err := os.ReadFile(path); err != nil || string(text) != "data" || IsLocked(path) {
		t.Errorf("after the lock the file holds %q: %v", text, err)
	}
	named, err := TakeLock(t.Context(), path, Holder{Who: "ada", Pid: 1, Since: time.Now(), Command: "orrery up"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := TakeLock(t.Context(), path, Holder{}); err == nil ||
		!strings.Contains(err.Error(), `ada runs "orrery up" (process 1)`) {
		t.Errorf("who has it is told as %v", err)
	}
	named.Release()
	if text, err := os.ReadFile(path); err != nil || len(text) > 0 {
		t.Errorf("the holder is named after he let go: %q, %v", text, err)
	}
}

// TestWaitTells checks that a wait for another process's lock is reported after a second, with that
// process, its user and its command. The holder has not written these anywhere. The wait must end
// when the lock is released.
func TestWaitTells(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	l, err := TryLock(path, Exclusive)
	if err != nil {
		t.Fatal(err)
	}
	other := exec.Command("sleep", "2.5") // inherits the lock and holds it until it ends
	other.ExtraFiles = []*os.File{l.file}
	if err := other.Start(); err != nil {
		t.Fatal(err)
	}
	l.file.Close()
	var told []string
	ctx := waits.WithReporter(t.Context(), func(text string) { told = append(told, text) })
	began := time.Now()
	next, err := WaitLock(ctx, path, Shared, "the lock of a test")
	if err != nil {
		t.Fatal(err)
	}
	next.Release()
	if took := time.Since(began); took < 2*time.Second || len(told) != 2 ||
		!strings.HasPrefix(told[0], "waits for the lock of a test: ") ||
		!strings.Contains(told[0], fmt.Sprintf("(process %d)", os.Getpid())) ||
		!strings.HasPrefix(told[1], "got the lock of a test after ") {
		t.Errorf("after %v it is told %q", took, told)
	}
	if err := other.Wait(); err != nil {
		t.Error(err)
	}
}

// TestLockOnFrozenDisk checks that a wait for a frozen disk is reported.
func TestLockOnFrozenDisk(t *testing.T) {
	old := openLockFunc
	defer func() { openLockFunc = old }()
	for name, take := range map[string]func(ctx context.Context, path string) (*Lock, error){
		"WaitLock": func(ctx context.Context, path string) (*Lock, error) {
			return WaitLock(ctx, path, Exclusive, "the lock of a test")
		},
		"TakeLock": func(ctx context.Context, path string) (*Lock, error) { return TakeLock(ctx, path, Holder{}) },
	} {
		synctest.Test(t, func(t *testing.T) {
			path, told := filepath.Join(t.TempDir(), "lock"), make(chan string, 1)
			openLockFunc = func(path string) (*os.File, error) {
				if text := <-told; text != "still waiting for the disk of "+path+", 5 s" {
					t.Errorf("%s: %s", name, text)
				}
				return openLock(path)
			}
			l, err := take(waits.WithReporter(t.Context(), func(text string) { told <- text }), path)
			if err != nil {
				t.Fatal(err)
			}
			l.Release()
		})
	}
}

// TestHolding checks that a lock for which others may wait counts as long as it is held.
func TestHolding(t *testing.T) {
	before := heldLocks.Load() // locks of other tests, if any
	dir := t.TempDir()
	waited, err := WaitLock(t.Context(), filepath.Join(dir, "waited"), Exclusive, "the lock of a test")
	if err != nil {
		t.Fatal(err)
	}
	taken, err := TakeLock(t.Context(), filepath.Join(dir, "taken"), Holder{})
	if err != nil {
		t.Fatal(err)
	}
	tried, err := TryLock(filepath.Join(dir, "tried"), Exclusive)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := TakeLock(t.Context(), filepath.Join(dir, "taken"), Holder{}); err == nil {
		t.Error("two have it")
	}
	elsewhere := CountLock()
	if n := heldLocks.Load() - before; n != 3 || !HoldsLock() {
		t.Errorf("%d locks are counted", n)
	}
	for _, release := range []func(){waited.Release, taken.Release, tried.Release, elsewhere, elsewhere} {
		release()
	}
	if n := heldLocks.Load() - before; n != 0 {
		t.Errorf("of no lock, %d are counted", n)
	}
}
