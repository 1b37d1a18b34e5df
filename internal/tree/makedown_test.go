package tree

import (
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

// TestMakeDown: a directory is opened or created exactly at its path. No link is followed, and
// nothing is created behind one.
func TestMakeDown(t *testing.T) {
	top := t.TempDir()
	for _, d := range []string{"root/there", "outside"} {
		if err := os.MkdirAll(filepath.Join(top, d), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for link, to := range map[string]string{"in": "there", "out": filepath.Join(top, "outside"), "up": "../outside",
		"dangling": "nowhere"} {
		if err := os.Symlink(to, filepath.Join(top, "root", link)); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(top, "root/file"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	r, err := Open(filepath.Join(top, "root"))
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	for _, path := range []string{"/", "there", "/there/a/b", "/there/../there/a", "/../new"} {
		dir, err := r.MkdirAllNoFollow(path, os.Getuid(), os.Getgid())
		if err != nil {
			t.Errorf("%s: %v", path, err)
			continue
		}
		var got, shall unix.Stat_t
		if err := unix.Fstat(int(dir.Fd()), &got); err != nil {
			t.Error(err)
		}
		if err := unix.Stat(filepath.Join(top, "root", filepath.Clean("/"+path)), &shall); err != nil ||
			got.Ino != shall.Ino {
			t.Errorf("%s leads elsewhere: %v", path, err)
		}
		dir.Close()
	}
	if info, err := os.Stat(filepath.Join(top, "root/there/a/b")); err != nil || info.Mode().Perm() != 0o755 {
		t.Errorf("made as %v, %v", info, err)
	}
	for _, path := range []string{"in", "in/x", "out", "out/x", "up/x", "dangling", "dangling/x", "file", "file/x"} {
		if dir, err := r.MkdirAllNoFollow(path, os.Getuid(), os.Getgid()); err == nil {
			t.Errorf("%s is %s", path, dir.Name())
		}
	}
	for _, made := range []string{"outside/x", "root/there/x", "root/nowhere"} {
		if Exists(filepath.Join(top, made)) {
			t.Errorf("%s was made", made)
		}
	}
}
