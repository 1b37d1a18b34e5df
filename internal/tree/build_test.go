package tree

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

func nothing(*os.File) error { return nil }

func made(name string, mode uint32) *Header {
	return &Header{Path: name, Mode: mode, Uid: os.Geteuid(), Gid: os.Getegid(), Modified: time.Unix(1e9, 5)}
}

// TestBuildStaysInside: whatever the paths are, nothing is created outside of the tree, and nothing
// that only appears to be in it.
func TestBuildStaysInside(t *testing.T) {
	outside := t.TempDir()
	link := made("x", unix.S_IFLNK|0o777)
	link.Link = outside
	same := made("y", unix.S_IFREG|0o600)
	same.Same = "../outside/secret"
	through := made("y", unix.S_IFREG|0o600)
	through.Same = "x/secret"
	device := made("x", unix.S_IFBLK|0o600)
	must(t, os.WriteFile(filepath.Join(outside, "secret"), []byte("of the host"), 0o600))
	for name, all := range map[string][]*Header{
		"through a link": {link, made("x/file", unix.S_IFREG|0o600)},
		"below a file":   {made("x", unix.S_IFREG|0o600), made("x/file", unix.S_IFREG|0o600)},
		"up":             {made("../file", unix.S_IFREG|0o600)},
		"absolute":       {made("/file", unix.S_IFREG|0o600)},
		"twice":          {made("x", unix.S_IFREG|0o600), made("x", unix.S_IFREG|0o600)},
		"the top again":  {made(".", unix.S_IFDIR|0o700)},
		"out of order":   {made("b", unix.S_IFREG|0o600), made("a", unix.S_IFREG|0o600)},
		"into a left one": {made("a", unix.S_IFDIR|0o700), made("b", unix.S_IFDIR|0o700),
			made("a/c", unix.S_IFREG|0o600)},
		"in no directory":      {made("a/b", unix.S_IFREG|0o600)},
		"a name of it outside": {link, same},
		"by way of a link":     {link, through},
		"a device":             {device},
		"a long name":          {made(strings.Repeat("n", 256), unix.S_IFREG|0o600)},
	} {
		b, err := NewBuilder(filepath.Join(t.TempDir(), "tree"), func(string) {})
		must(t, err)
		must(t, b.Add(made(".", unix.S_IFDIR|0o700), nil))
		for _, m := range all {
			if err = b.Add(m, nothing); err != nil {
				break
			}
		}
		b.Abandon()
		if err == nil {
			t.Errorf("%s: it was made", name)
		}
	}
	if names, _ := os.ReadDir(outside); len(names) != 1 {
		t.Errorf("there are %d files outside", len(names))
	}
}

func TestBuild(t *testing.T) {
	top := filepath.Join(t.TempDir(), "tree")
	b, err := NewBuilder(top, func(string) {})
	must(t, err)
	must(t, b.Add(made(".", unix.S_IFDIR|0o711), nil))
	deep := "a"
	must(t, b.Add(made(deep, unix.S_IFDIR|0o500), nil))
	for range 100 {
		deep += "/" + strings.Repeat("d", 60)
		must(t, b.Add(made(deep, unix.S_IFDIR|0o755), nil))
	}
	must(t, b.Add(made(deep+"/file", unix.S_IFREG|0o4711),
		func(f *os.File) error { _, err := f.WriteString("text"); return err }))
	other := made("a.b", 0)
	other.Same = deep + "/file"
	must(t, b.Add(other, nothing))
	must(t, b.Add(made("pipe", unix.S_IFIFO|0o622), nil))
	must(t, b.Close())
	r, err := Open(top)
	must(t, err)
	defer r.Close()
	for name, mode := range map[string]uint32{".": unix.S_IFDIR | 0o711, "a": unix.S_IFDIR | 0o500,
		"a.b": unix.S_IFREG | 0o4711, "pipe": unix.S_IFIFO | 0o622} {
		st, err := r.Lstat(name)
		must(t, err)
		if st.Mode != mode || st.Mtim.Nano() != 1e18+5 {
			t.Errorf("%s has the mode %o and the time %d", name, st.Mode, st.Mtim.Nano())
		}
	}
	if text, err := r.ReadFile("a.b", 100); string(text) != "text" {
		t.Errorf("it holds %q: %v", text, err)
	}
	must(t, unix.Fchmodat(r.Fd(), "a", 0o700, 0))
	if _, err := NewBuilder(top, nil); !errors.Is(err, os.ErrExist) {
		t.Errorf("a tree in the place of another: %v", err)
	}
	must(t, RemoveAll(top))
}
