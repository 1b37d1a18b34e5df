package tree

import (
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

// TestPatchReadOnly: the content of a read-only file is changed, by any user who owns it. What is no
// regular file is neither changed nor made writable.
func TestPatchReadOnly(t *testing.T) {
	top := t.TempDir()
	file, outside := filepath.Join(top, "file"), filepath.Join(t.TempDir(), "outside")
	must(t, os.WriteFile(file, []byte("old"), 0o400))
	must(t, os.WriteFile(outside, []byte("theirs"), 0o400))
	must(t, os.Symlink(outside, filepath.Join(top, "link")))
	must(t, unix.Mkfifo(filepath.Join(top, "pipe"), 0o400))
	r, err := Open(top)
	must(t, err)
	defer r.Close()
	p := NewPatcher(r, func(string) {})
	defer p.Close()
	f, err := p.OpenFile("file", true)
	must(t, err)
	_, err = f.WriteAt([]byte("new"), 0)
	must(t, err)
	must(t, f.Close())
	if got, _ := os.ReadFile(file); string(got) != "new" {
		t.Errorf("it is %q", got)
	}
	for _, name := range []string{"link", "pipe"} {
		if f, err := p.OpenFile(name, true); err == nil {
			t.Errorf("%s: opened %s", name, f.Name())
		}
	}
	for _, path := range []string{outside, filepath.Join(top, "pipe")} {
		if info, err := os.Lstat(path); err != nil || info.Mode().Perm() != 0o400 {
			t.Errorf("%s: %v, %v", path, info.Mode(), err)
		}
	}
}
