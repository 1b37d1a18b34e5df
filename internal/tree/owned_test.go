package tree

import (
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

func everybody(uint32) bool { return true }

// TestOpenOwned: a file is opened if its whole path belongs to the root of a node. Nothing else is
// opened, and nothing blocks.
//
// Promise (Trees that others write): `cp` opens itself only a regular file that, like all
// directories above it, has an owner and a group of the node, on a file system that only the host's
// kernel guards; it follows no link, waits for nothing, and reads at most the first size. The
// node's `tar` sends all else. With tree.TestOpenOwnedOnDisksOnly, tree.TestOpenOwnedByOthers,
// tree.TestOpenOwnedExchanged, host/nodecopy.TestSeenHostile, host/nodecopy.TestSeenChanging,
// host/nodecopy.TestSeenInterrupted.
func TestOpenOwned(t *testing.T) {
	dir := t.TempDir()
	mode := os.FileMode(0o400)
	if os.Geteuid() == 0 { // root reads files that no user may read
		mode = 0
	}
	for _, err := range []error{
		os.MkdirAll(filepath.Join(dir, "a/b"), 0o755), os.WriteFile(filepath.Join(dir, "a/b/file"), []byte("mine"), mode),
		os.WriteFile(filepath.Join(dir, "top"), nil, 0o600),
		os.Symlink("b", filepath.Join(dir, "a/link")), os.Symlink("file", filepath.Join(dir, "a/b/link")),
		os.Symlink("/etc/passwd", filepath.Join(dir, "passwd")),
		unix.Mkfifo(filepath.Join(dir, "fifo"), 0o600),
	} {
		must(t, err)
	}
	root, err := Open(dir)
	must(t, err)
	defer root.Close()
	f, st, err := root.OpenOwned("/a/b/../b/file", everybody)
	must(t, err)
	defer f.Close()
	if text, err := io.ReadAll(f); string(text) != "mine" || st.Size != 4 || err != nil {
		t.Errorf("it holds %q, of %d bytes: %v", text, st.Size, err)
	}
	if f, _, err := root.OpenOwned("top", everybody); err != nil {
		t.Error(err)
	} else {
		f.Close()
	}
	for path, want := range map[string]error{
		"a/link/file": unix.ENOTDIR, "a/b/link": ErrNotRegular, "passwd": ErrNotRegular, "fifo": ErrNotRegular,
		"a": ErrNotRegular, "": ErrNotRegular,
		"none": fs.ErrNotExist, "a/none/file": fs.ErrNotExist, "a/b/file/x": unix.ENOTDIR,
		"../" + filepath.Base(dir) + "/top": fs.ErrNotExist,
	} {
		if f, _, err := root.OpenOwned(path, everybody); !errors.Is(err, want) {
			t.Errorf("%q: %v, %v, want %v", path, f, err, want)
		}
	}
}

// TestOpenOwnedOnDisksOnly: files of the kernel and devices are not opened, whoever owns them.
func TestOpenOwnedOnDisksOnly(t *testing.T) {
	for top, name := range map[string]string{"/proc/self/.": "environ", "/proc": "self/status", "/sys": "kernel/notes",
		"/dev": "null"} {
		root, err := Open(top)
		must(t, err)
		defer root.Close()
		if _, _, err := root.OpenOwned(name, everybody); err == nil {
			t.Errorf("%s/%s was opened", top, name)
		}
	}
}

// TestOpenOwnedByOthers: the owner and the group of every directory on the way count as those of
// the file do.
func TestOpenOwnedByOthers(t *testing.T) {
	dir := t.TempDir()
	must(t, os.MkdirAll(filepath.Join(dir, "a/b"), 0o755))
	must(t, os.WriteFile(filepath.Join(dir, "a/b/file"), nil, 0o666))
	root, err := Open(dir)
	must(t, err)
	defer root.Close()
	parts := 4 // the top, a, b and the file; owner and group of each are checked
	for denied := range 2 * parts {
		asked := -1
		_, _, err := root.OpenOwned("a/b/file", func(uint32) bool { asked++; return asked != denied })
		if !errors.Is(err, fs.ErrPermission) || asked != denied {
			t.Errorf("the %d. id is another's, and %d were asked about: %v", denied+1, asked+1, err)
		}
	}
	if os.Geteuid() != 0 {
		return
	}
	must(t, os.Chown(filepath.Join(dir, "a"), 12345, 0))
	if _, _, err := root.OpenOwned("a/b/file", func(id uint32) bool { return id == 0 }); !errors.Is(err,
		fs.ErrPermission) {
		t.Errorf("below a directory of 12345: %v", err)
	}
}

// TestOpenOwnedExchanged: whatever replaces a part of the path after its check, only what has been
// checked is opened.
func TestOpenOwnedExchanged(t *testing.T) {
	for part := range 4 {
		dir := t.TempDir()
		must(t, os.MkdirAll(filepath.Join(dir, "mine/b"), 0o755))
		must(t, os.WriteFile(filepath.Join(dir, "mine/b/file"), []byte("mine"), 0o600))
		must(t, os.MkdirAll(filepath.Join(dir, "theirs/b"), 0o755))
		must(t, os.WriteFile(filepath.Join(dir, "theirs/b/file"), []byte("theirs"), 0o600))
		root, err := Open(dir)
		must(t, err)
		defer root.Close()
		asked := 0
		f, _, err := root.OpenOwned("mine/b/file", func(uint32) bool {
			if asked++; asked == 2*part+1 {
				must(t, os.Rename(filepath.Join(dir, "mine"), filepath.Join(dir, "old")))
				must(t, os.Symlink("theirs", filepath.Join(dir, "mine")))
				must(t, os.Remove(filepath.Join(dir, "old/b/file")))
				must(t, os.Symlink("/etc/passwd", filepath.Join(dir, "old/b/file")))
			}
			return true
		})
		if part < 3 && err == nil {
			t.Errorf("exchanged at part %d: %s was opened", part, f.Name())
		}
		if part == 3 {
			must(t, err)
			if text, _ := io.ReadAll(f); string(text) != "mine" {
				t.Errorf("it holds %q", text)
			}
		}
	}
}

// TestCarriers: every way of copying between two files preserves content and positions.
func TestCarriers(t *testing.T) {
	text := bytes.Repeat([]byte("0123456789"), 300_000)
	for name, carry := range map[string]copyFunc{"range": copyFileRange, "send": sendFile, "buffer": copyBuffered} {
		from, to := filled(t, text), filled(t, nil)
		at := int64(7)
		for at < int64(len(text)) {
			n, err := carry(int(to.Fd()), int(from.Fd()), at, 1<<30)
			if n == 0 || err != nil {
				t.Fatalf("%s: at %d came %d: %v", name, at, n, err)
			}
			at += int64(n)
		}
		if n, err := carry(int(to.Fd()), int(from.Fd()), at, 10); n != 0 || err != nil {
			t.Errorf("%s: behind the end came %d: %v", name, n, err)
		}
		got, err := os.ReadFile(to.Name())
		if err != nil || !bytes.Equal(got[7:], text[7:]) || !bytes.Equal(got[:7], make([]byte, 7)) {
			t.Errorf("%s: %d bytes came: %v", name, len(got), err)
		}
	}
}

// TestContentAcross: content is copied to another file system, and the progress adds up to all of
// it.
func TestContentAcross(t *testing.T) {
	text := bytes.Repeat([]byte("0123456789"), 3_000_000)
	from := filled(t, text)
	to, err := os.CreateTemp("/dev/shm", "orrery-test-")
	must(t, err)
	defer os.Remove(to.Name())
	defer to.Close()
	var st unix.Stat_t
	must(t, unix.Fstat(int(from.Fd()), &st))
	told := int64(0)
	must(t, CopyContent(context.Background(), int(to.Fd()), int(from.Fd()), &st, func(n int64) { told += n }))
	if got, err := os.ReadFile(to.Name()); err != nil || !bytes.Equal(got, text) || told != st.Size {
		t.Errorf("%d bytes came, and %d were told: %v", len(got), told, err)
	}
}

func filled(t *testing.T, text []byte) *os.File {
	t.Helper()
	f, err := os.CreateTemp(t.TempDir(), "")
	must(t, err)
	t.Cleanup(func() { f.Close() })
	_, err = f.Write(text)
	must(t, err)
	return f
}
