package volume

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"orrery/internal/problem"
	"orrery/internal/tree"
	"orrery/test/need"
)

// TestExchange: a node continuously exchanges a directory with a link to a directory of the host.
// No file of the host gets into a copy.
//
// Promise (Trees that others write): No file of the host gets into a snapshot, quarantine copy,
// twin or backup, whatever a node does while it is copied. With tree.TestExchange.
func TestExchange(t *testing.T) {
	dir := t.TempDir()
	host, from := filepath.Join(dir, "host"), filepath.Join(dir, "from")
	for i := range 200 {
		write(t, filepath.Join(host, fmt.Sprint(i)), "of the host")
		write(t, filepath.Join(from, "turns", fmt.Sprint(i)), "of the node")
	}
	if err := os.Symlink(host, filepath.Join(from, "link")); err != nil {
		t.Fatal(err)
	}
	defer exchange(filepath.Join(from, "turns"), filepath.Join(from, "link"))()
	for i, end := 0, time.Now().Add(time.Duration(need.Times(1, 3))*time.Second); time.Now().Before(end); i++ {
		to := filepath.Join(dir, fmt.Sprint("to", i))
		if _, err := CloneLive(t.Context(), from, to, once); err != nil &&
			!strings.Contains(err.Error(), "its writers are frozen") {
			t.Fatal(err)
		}
		wantNone(t, to, "of the host")
		if err := Erase(to); err != nil {
			t.Fatal(err)
		}
	}
}

// exchange exchanges two paths repeatedly, until it is stopped.
func exchange(a, b string) (end func()) {
	stop, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		for {
			select {
			case <-stop:
				return
			default:
				_ = unix.Renameat2(unix.AT_FDCWD, a, unix.AT_FDCWD, b, unix.RENAME_EXCHANGE)
			}
		}
	}()
	return func() { close(stop); <-done }
}

// wantNone wants a text in no file of a tree.
func wantNone(t *testing.T, dir, text string) {
	t.Helper()
	_ = filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || !e.Type().IsRegular() {
			return nil //nolint:nilerr // what is not there holds nothing
		}
		if content, err := os.ReadFile(path); err != nil || bytes.Contains(content, []byte(text)) {
			t.Fatalf("%s holds %q (%v)", path, content, err)
		}
		return nil
	})
}

// dig makes nested directories, and a file in the last one.
func dig(t *testing.T, top string, levels int, name string) {
	t.Helper()
	if err := os.MkdirAll(top, 0o755); err != nil {
		t.Fatal(err)
	}
	at, err := unix.Open(top, unix.O_RDONLY|unix.O_DIRECTORY, 0)
	for range levels {
		if err == nil {
			err = unix.Mkdirat(at, name, 0o755)
		}
		next, badly := unix.Openat(at, name, unix.O_RDONLY|unix.O_DIRECTORY, 0)
		err = errors.Join(err, badly, unix.Close(at))
		at = next
	}
	fd, badly := unix.Openat(at, "leaf", unix.O_CREAT|unix.O_WRONLY, 0o600)
	if err := errors.Join(err, badly, unix.Close(at), unix.Close(fd)); err != nil {
		t.Fatal(err)
	}
}

// leaves counts the files below a directory, however deep they are, and returns the length of the
// longest path.
func leaves(t *testing.T, dir string) (files, longest int) {
	t.Helper()
	root, err := tree.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	err = root.Walk(t.Context(), tree.Bounds{Depth: 5000, Names: 1000, All: 10000}, func(e *tree.Entry) error {
		if !e.IsDir() {
			files, longest = files+1, max(longest, len(e.Path))
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return files, longest
}

// TestDeep: a path that is longer than the kernel accepts in one call is copied like any other,
// even in a later round, and is removed.
func TestDeep(t *testing.T) {
	dir := t.TempDir()
	from, to := filepath.Join(dir, "from"), filepath.Join(dir, "to")
	dig(t, from, 300, strings.Repeat("d", 60))
	write(t, filepath.Join(from, "shallow"), "x")
	made, err := CloneLive(t.Context(), from, to, after(func() error {
		dig(t, filepath.Join(from, "second"), 300, strings.Repeat("e", 60))
		return nil
	}))
	if err != nil || len(made.Skipped) > 0 {
		t.Fatal(made, err)
	}
	if files, longest := leaves(t, to); files != 3 || longest < 4*unix.PathMax {
		t.Errorf("there are %d files, at most %d bytes below", files, longest)
	}
	if s, err := SizeOf(t.Context(), to); err != nil || s.Files != 3 || s.Partial {
		t.Errorf("its size is %+v (%v)", s, err)
	}
	for _, path := range []string{from, to} {
		if err := Erase(path); err != nil {
			t.Error(err)
		}
		if _, err := os.Lstat(path); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s is still there: %v", path, err)
		}
	}
}

// TestDeepLinks: hard links far below are copied as hard links.
func TestDeepLinks(t *testing.T) {
	dir := t.TempDir()
	from, to := filepath.Join(dir, "from"), filepath.Join(dir, "to")
	dig(t, from, 300, strings.Repeat("d", 60))
	root, err := tree.Open(from)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	err = root.Walk(t.Context(), tree.DefaultBounds, func(e *tree.Entry) error {
		if e.Name != "leaf" {
			return nil
		}
		return unix.Linkat(e.Dir, e.Name, root.Fd(), "z", 0)
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Clone(t.Context(), from, to); err != nil {
		t.Fatal(err)
	}
	if files, _ := leaves(t, to); files != 2 {
		t.Errorf("there are %d files", files)
	}
	var st unix.Stat_t
	if err := unix.Lstat(filepath.Join(to, "z"), &st); err != nil || st.Nlink != 2 {
		t.Errorf("it has %d names (%v)", st.Nlink, err)
	}
}

// TestBeyond: what exceeds the limits is left out and reported, and the rest is complete.
func TestBeyond(t *testing.T) {
	dir := t.TempDir()
	from, to := filepath.Join(dir, "from"), filepath.Join(dir, "to")
	bounds = tree.Bounds{Depth: 20, Names: 50, All: 1000}
	defer func() { bounds = tree.DefaultBounds }()
	dig(t, filepath.Join(from, "deep"), 100, "d\x1b[31m")
	for i := range 60 {
		write(t, filepath.Join(from, "full", fmt.Sprint(i)), "x")
	}
	write(t, filepath.Join(from, "whole"), "x")
	made, err := CloneLive(t.Context(), from, to, once)
	if err != nil || len(made.Skipped) != 2 {
		t.Fatal(made, err)
	}
	all := strings.Join(made.Skipped, "\n")
	for _, want := range []string{"deep/", "more than 20 nested directories", "full: more than 50 names", `\x1b`} {
		if !strings.Contains(all, want) {
			t.Errorf("%q is not in what is told:\n%s", want, all)
		}
	}
	if files, _ := leaves(t, to); files != 1 {
		t.Errorf("there are %d files", files)
	}
	if s, err := SizeOf(t.Context(), from); err != nil || !s.Partial {
		t.Errorf("its size is %+v (%v)", s, err)
	}
	// There is more than the total limit. A later round must not keep what an earlier one has copied
	// beyond it.
	bounds = tree.Bounds{Depth: 20, Names: 100, All: 70}
	made, err = Clone(t.Context(), from, filepath.Join(dir, "all"))
	if err != nil || len(made.Skipped) != 2 {
		t.Fatal(made, err)
	}
}

// TestMany: however much is left out, the report is short.
func TestMany(t *testing.T) {
	dir := t.TempDir()
	from := filepath.Join(dir, "from")
	bounds = tree.Bounds{Depth: 1, Names: 500, All: 1000}
	defer func() { bounds = tree.DefaultBounds }()
	for i := range 300 {
		write(t, filepath.Join(from, fmt.Sprint(i), "x"), "x")
	}
	made, err := Clone(t.Context(), from, filepath.Join(dir, "to"))
	if err != nil || len(made.Skipped) != 11 || made.Skipped[10] != "and 290 more" {
		t.Errorf("%q (%v)", made.Skipped, err)
	}
}

// TestPipe: the copy does not wait for a named pipe or a socket, and a socket is left out.
func TestPipe(t *testing.T) {
	dir := t.TempDir()
	from, to := filepath.Join(dir, "from"), filepath.Join(dir, "to")
	write(t, filepath.Join(from, "x"), "x")
	socket, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(socket) //nolint:errcheck // the end of the test
	if err := errors.Join(unix.Mkfifo(filepath.Join(from, "pipe"), 0o622),
		unix.Bind(socket, &unix.SockaddrUnix{Name: filepath.Join(from, "socket")})); err != nil {
		t.Fatal(err)
	}
	made, err := CloneLive(t.Context(), from, to, once)
	if err != nil || len(made.Skipped) > 0 {
		t.Fatal(made, err)
	}
	var st unix.Stat_t
	if err := unix.Lstat(filepath.Join(to, "pipe"), &st); err != nil || st.Mode&unix.S_IFMT != unix.S_IFIFO {
		t.Errorf("the pipe has the mode %o (%v)", st.Mode, err)
	}
	if names, _ := os.ReadDir(to); len(names) != 2 {
		t.Errorf("there is %v", names)
	}
}

// TestDevices: devices are not copied, and this is reported. Whiteouts of overlayfs are copied.
//
// Promise (Trees that others write): No device gets into a copy, backup or mirror; those left out
// are reported. With backup.TestDevices.
func TestDevices(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root makes devices")
	}
	dir := t.TempDir()
	from, to := filepath.Join(dir, "from"), filepath.Join(dir, "to")
	write(t, filepath.Join(from, "x"), "x")
	sh(t, `set -e; cd "$1"; mknod null c 1 3; mknod disk b 7 200; mknod whiteout c 0 0; ln whiteout other`, from)
	made, err := CloneLive(t.Context(), from, to, once)
	if err != nil || fmt.Sprint(made.Skipped) != "[disk: a device null: a device]" {
		t.Fatalf("%q (%v)", made.Skipped, err)
	}
	var a, b unix.Stat_t
	if err := errors.Join(unix.Lstat(filepath.Join(to, "whiteout"), &a),
		unix.Lstat(filepath.Join(to, "other"), &b)); err != nil || a.Rdev != 0 ||
		a.Mode&unix.S_IFMT != unix.S_IFCHR || a.Ino != b.Ino {
		t.Errorf("%+v (%v)", a, err)
	}
	if names, _ := os.ReadDir(to); len(names) != 3 {
		t.Errorf("there is %v", names)
	}
}

// TestFull: if the disk fills up, the copy ends with a clear problem, and nothing of it is left.
// Some space stays free for the nodes.
//
// Promise (Trees that others write): A copy that would fill the disk stops before, leaves nothing
// behind, and lets the nodes continue.
func TestFull(t *testing.T) {
	need.Integration(t)
	small := t.TempDir()
	if err := unix.Mount("orrery-test", small, "tmpfs", 0, "size=100m"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Unmount(small, unix.MNT_DETACH) })
	from := filepath.Join(t.TempDir(), "from")
	sh(t, `mkdir "$1"; for i in $(seq 60); do head -c 2000000 /dev/urandom > "$1/$i"; done; head -c 1000 /dev/urandom > "$1/small"`,
		from)
	_, err := CloneLive(t.Context(), from, filepath.Join(small, "to"), once)
	if problem.ExitCode(err) != int(problem.Unable) || !strings.Contains(err.Error(), "room") {
		t.Errorf("on a full disk: %v", err)
	}
	if left, _ := os.ReadDir(small); len(left) > 0 {
		t.Errorf("%v is left", left)
	}
	// It fills up while the nodes are frozen.
	sh(t, `cd "$1"; rm -f [2-6]?`, from)
	still := func(ctx context.Context, do func(context.Context) error) error {
		sh(t, `head -c 90000000 /dev/urandom > "$1/big"`, from)
		return do(ctx)
	}
	_, err = CloneLive(t.Context(), from, filepath.Join(small, "to"), still)
	if problem.ExitCode(err) != int(problem.Unable) {
		t.Errorf("on a full disk: %v", err)
	}
	if left, _ := os.ReadDir(small); len(left) > 0 {
		t.Errorf("%v is left", left)
	}
	// Inodes run out, too.
	if err := unix.Mount("", small, "", unix.MS_REMOUNT, "size=100m,nr_inodes=50"); err != nil {
		t.Fatal(err)
	}
	sh(t, `cd "$1"; rm *; for i in $(seq 100); do echo $i > $i; done`, from)
	if _, err = Clone(t.Context(), from, filepath.Join(small, "to")); problem.ExitCode(err) != int(problem.Unable) {
		t.Errorf("without inodes: %v", err)
	}
	if left, _ := os.ReadDir(small); len(left) > 0 {
		t.Errorf("%v is left", left)
	}
}
