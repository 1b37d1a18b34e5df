package image

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

func TestAccount(t *testing.T) {
	top, below := t.TempDir(), t.TempDir()
	for dir, files := range map[string]map[string]string{
		top:   {"etc/passwd": "root:x:0:0::/:\nme:x:1000:1001::/:\nnegative:x:-1900000000:0::/:\nhuge:x:70000:0::/:\nodd:x:5:x::/:\n"},
		below: {"etc/passwd": "other:x:7:7::/:\n", "etc/group": "staff:x:50:me\n"},
	} {
		ok(t, os.MkdirAll(filepath.Join(dir, "etc"), 0o755))
		for name, text := range files {
			ok(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644))
		}
	}
	for owner, want := range map[string][2]int{"": {0, 0}, "root": {0, 0}, "me": {1000, 1001}, "me:staff": {1000, 50},
		"12:34": {12, 34}} {
		uid, gid, err := LookupAccount([]string{top, below}, owner)
		if err != nil || uid != want[0] || gid != want[1] {
			t.Errorf("%q: %d:%d, %v", owner, uid, gid, err)
		}
	}
	// Added to the node's first id, a number outside of the node's range would be an id of the host
	// or of another node.
	for _, owner := range []string{"other", "nobody", "negative", "huge", "odd", "-5", "me:-1"} {
		if uid, gid, err := LookupAccount([]string{top, below}, owner); err == nil {
			t.Errorf("%q: %d:%d", owner, uid, gid)
		}
	}
}

// TestAccountInHostileTree: anything else in the place of the file is a clear error at once.
func TestAccountInHostileTree(t *testing.T) {
	outside := filepath.Join(t.TempDir(), "passwd")
	ok(t, os.WriteFile(outside, []byte("me:x:1:1::/:\n"), 0o644))
	for name, place := range map[string]func(at string) error{
		"named pipe":    func(at string) error { return unix.Mkfifo(at, 0o644) },
		"directory":     func(at string) error { return os.Mkdir(at, 0o755) },
		"endless":       func(at string) error { return os.Truncate(at, 1<<40) },
		"link out":      func(at string) error { return os.Symlink(outside, at) },
		"link to a tty": func(at string) error { return os.Symlink("/dev/tty", at) },
	} {
		dir := t.TempDir()
		at := filepath.Join(dir, "etc/passwd")
		ok(t, os.Mkdir(filepath.Dir(at), 0o755))
		if name == "endless" {
			ok(t, os.WriteFile(at, nil, 0o644))
		}
		ok(t, place(at))
		done := time.After(time.Minute)
		found := func() <-chan error {
			c := make(chan error, 1)
			go func() { _, _, err := LookupAccount([]string{dir}, "me"); c <- err }()
			return c
		}()
		select {
		case err := <-found:
			if err == nil || !strings.Contains(err.Error(), "passwd") {
				t.Errorf("%s: %v", name, err)
			}
		case <-done:
			t.Errorf("%s: it hangs", name)
		}
	}
}

func ok(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
