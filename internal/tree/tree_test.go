package tree

import (
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
)

// trap creates a tree whose links lead out of it, and a file outside that must not be reached.
func trap(t *testing.T) (r *Root, outside string) {
	t.Helper()
	dir := t.TempDir()
	outside = filepath.Join(dir, "outside")
	top := filepath.Join(dir, "tree")
	must(t, os.MkdirAll(filepath.Join(top, "etc"), 0o755))
	must(t, os.MkdirAll(outside, 0o755))
	must(t, os.WriteFile(filepath.Join(outside, "secret"), []byte("of the host"), 0o600))
	must(t, os.Symlink(outside, filepath.Join(top, "absolute")))
	must(t, os.Symlink("../outside", filepath.Join(top, "relative")))
	must(t, os.Symlink(filepath.Join(outside, "secret"), filepath.Join(top, "etc/key")))
	must(t, os.Symlink("/etc", filepath.Join(top, "inner")))
	r, err := Open(top)
	must(t, err)
	t.Cleanup(func() { r.Close() })
	return r, outside
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// Promise (Trees that others write): Orrery reads, writes and removes nothing outside a tree, and
// nothing in it blocks Orrery, whatever links, renames, pipes and depths it has. With
// tree.TestExchange, tree.TestOnlyRegularFiles, tree.TestDeep, tree.FuzzPaths.
func TestLinksStayInside(t *testing.T) {
	r, outside := trap(t)
	for _, name := range []string{"absolute/secret", "relative/secret", "etc/key", "../outside/secret",
		"inner/../../outside/secret"} {
		if text, err := r.ReadFile(name, 100); err == nil {
			t.Errorf("%s was read: %q", name, text)
		}
	}
	for _, name := range []string{"etc/key", "inner/other"} {
		must(t, r.Put(File{Path: name, Content: []byte("of the node"), Uid: os.Geteuid(), Gid: os.Getegid(), Mode: 0o600},
			os.Geteuid(), os.Getegid()))
		text, err := r.ReadFile(name, 100)
		if err != nil || string(text) != "of the node" {
			t.Errorf("%s holds %q: %v", name, text, err)
		}
	}
	if err := r.Put(File{Path: "absolute/secret", Content: []byte("x"), Mode: 0o600}, os.Geteuid(),
		os.Getegid()); err == nil {
		t.Error("a file was written below a link that leads nowhere in the tree")
	}
	must(t, r.RemoveAll("relative"))
	if text, err := os.ReadFile(filepath.Join(outside, "secret")); err != nil || string(text) != "of the host" {
		t.Errorf("the file outside holds %q: %v", text, err)
	}
	if names, _ := os.ReadDir(outside); len(names) != 1 {
		t.Errorf("there are %d files outside", len(names))
	}
}

func TestOnlyRegularFiles(t *testing.T) {
	r, _ := trap(t)
	must(t, unix.Mkfifo(filepath.Join(r.Name(), "pipe"), 0o600))
	must(t, os.Symlink("pipe", filepath.Join(r.Name(), "link")))
	for _, name := range []string{"pipe", "link", "etc"} {
		begun := time.Now()
		if _, err := r.ReadFile(name, 100); !errors.Is(err, ErrNotRegular) || time.Since(begun) > time.Minute {
			t.Errorf("%s: %v after %s", name, err, time.Since(begun))
		}
	}
	if _, err := ReadFile("/dev/zero", 100); !errors.Is(err, ErrNotRegular) {
		t.Errorf("/dev/zero: %v", err)
	}
	must(t, os.WriteFile(filepath.Join(r.Name(), "long"), []byte("12345"), 0o600))
	if _, err := r.ReadFile("long", 4); !errors.Is(err, ErrTooLarge) {
		t.Errorf("five bytes of at most four: %v", err)
	}
	if text, err := r.ReadFile("long", 5); err != nil || string(text) != "12345" {
		t.Errorf("five bytes of at most five: %q, %v", text, err)
	}
}

func TestMagicLinks(t *testing.T) {
	r, err := Open(fmt.Sprint("/proc/", os.Getpid()))
	must(t, err)
	defer r.Close()
	if _, err := r.Names("root", 1000); !errors.Is(err, unix.ELOOP) {
		t.Errorf("the root behind /proc/self/root: %v", err)
	}
}

// deepTree creates nested directories, whose path is longer than PATH_MAX.
func deepTree(t *testing.T, top string, levels int) {
	t.Helper()
	dir, err := unix.Open(top, unix.O_RDONLY|unix.O_DIRECTORY, 0)
	must(t, err)
	for range levels {
		must(t, unix.Mkdirat(dir, strings.Repeat("d", 60), 0o755))
		next, err := unix.Openat(dir, strings.Repeat("d", 60), unix.O_RDONLY|unix.O_DIRECTORY, 0)
		must(t, err)
		must(t, unix.Close(dir))
		dir = next
	}
	fd, err := unix.Openat(dir, "leaf", unix.O_CREAT|unix.O_WRONLY, 0o600)
	must(t, err)
	must(t, errors.Join(unix.Close(fd), unix.Close(dir)))
}

func TestDeep(t *testing.T) {
	top := filepath.Join(t.TempDir(), "top")
	must(t, os.Mkdir(top, 0o755))
	deepTree(t, top, 300)
	r, err := Open(top)
	must(t, err)
	defer r.Close()
	leaf := ""
	must(t, r.Walk(context.Background(), DefaultBounds, func(e *Entry) error { leaf = e.Path; return nil }))
	if len(leaf) <= unix.PathMax || !strings.HasSuffix(leaf, "/leaf") {
		t.Errorf("the last path has %d bytes: %s", len(leaf), DisplayPath(leaf))
	}
	err = r.Walk(context.Background(), Bounds{Depth: 100, Names: 10, All: 1000}, func(*Entry) error { return nil })
	if !errors.Is(err, ErrTooLarge) || len(err.Error()) > 600 {
		t.Errorf("beyond the bounds: %v", err)
	}
	must(t, RemoveAll(top))
	if _, err := os.Lstat(top); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("it is still there: %v", err)
	}
	must(t, RemoveAll(top))
}

// TestExchange: while a directory and a link are exchanged (RENAME_EXCHANGE), nothing outside is
// ever seen, read or written.
func TestExchange(t *testing.T) {
	r, outside := trap(t)
	must(t, os.Mkdir(filepath.Join(r.Name(), "swap"), 0o755))
	must(t, os.WriteFile(filepath.Join(r.Name(), "swap/secret"), []byte("of the node"), 0o600))
	must(t, os.Symlink(outside, filepath.Join(r.Name(), "other")))
	stop, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		for {
			select {
			case <-stop:
				return
			default:
				_ = unix.Renameat2(r.Fd(), "swap", r.Fd(), "other", unix.RENAME_EXCHANGE)
			}
		}
	}()
	defer func() { close(stop); <-done }()
	for end := time.Now().Add(300 * time.Millisecond); time.Now().Before(end); {
		if text, err := r.ReadFile("swap/secret", 100); err == nil && string(text) != "of the node" {
			t.Fatalf("read %q", text)
		}
		must(t, r.Walk(context.Background(), DefaultBounds, func(e *Entry) error {
			if e.Name != "secret" {
				return nil
			}
			var st unix.Stat_t
			if err := unix.Stat(filepath.Join(outside, "secret"), &st); err == nil && st.Ino == e.Stat.Ino {
				t.Fatalf("the walk came to %s, which is outside", e.Path)
			}
			return nil
		}))
		_ = r.Put(File{Path: "swap/written", Content: []byte("x"), Uid: os.Geteuid(), Gid: os.Getegid(), Mode: 0o600},
			os.Geteuid(), os.Getegid())
	}
	if names, _ := os.ReadDir(outside); len(names) != 1 {
		t.Errorf("there are %d files outside", len(names))
	}
}

func TestPutModes(t *testing.T) {
	r, _ := trap(t)
	me, mine := os.Geteuid(), os.Getegid()
	must(t, r.Put(File{Path: "/a/b/c", Content: []byte("x"), Uid: me, Gid: mine, Mode: 0o4711}, me, mine))
	st, err := r.Lstat("a/b/c")
	must(t, err)
	if st.Mode != unix.S_IFREG|0o4711 {
		t.Errorf("mode %o", st.Mode)
	}
	must(t, r.Put(File{Path: "a/b/c", Link: "/nowhere", Uid: me, Gid: mine}, me, mine))
	if says, err := r.Readlink("a/b/c"); err != nil || says != "/nowhere" {
		t.Errorf("the link says %q: %v", says, err)
	}
	if err := r.Put(File{Path: "a/b", Content: []byte("x")}, me, mine); err == nil {
		t.Error("a file took the place of a directory")
	}
	if names, _ := r.Names("a", 10); len(names) != 1 {
		t.Errorf("left beside: %q", names)
	}
	if _, err := r.Names("a", 0); !errors.Is(err, ErrTooLarge) {
		t.Errorf("one name of at most none: %v", err)
	}
}

func FuzzPaths(f *testing.F) {
	for _, s := range []string{"", ".", "..", "/", "../../etc/passwd", "absolute/secret", "a/../../b", "etc/key",
		"inner/inner/key", "\x00", "a//b/"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, name string) {
		r, outside := trap(t)
		me, mine := os.Geteuid(), os.Getegid()
		if text, err := r.ReadFile(name, 100); err == nil && string(text) == "of the host" {
			t.Fatalf("%q was read", name)
		}
		_ = r.Put(File{Path: name, Content: []byte("x"), Uid: me, Gid: mine, Mode: 0o600}, me, mine)
		_ = r.RemoveAll(name)
		if text, err := os.ReadFile(filepath.Join(outside, "secret")); err != nil || string(text) != "of the host" {
			t.Fatalf("%q reached outside: %q, %v", name, text, err)
		}
	})
}

func TestBeneath(t *testing.T) {
	inside, outside := trap(t)
	r, err := OpenBeneath(inside.Name())
	must(t, err)
	t.Cleanup(func() { r.Close() })
	must(t, os.WriteFile(filepath.Join(r.Name(), "real"), []byte("here"), 0o600))
	must(t, os.Symlink("../real", filepath.Join(r.Name(), "etc/up")))
	must(t, os.Symlink("/real", filepath.Join(r.Name(), "top")))
	must(t, os.Symlink("../../../real", filepath.Join(r.Name(), "etc/far")))
	if text, err := r.ReadFile("etc/up", 10); err != nil || string(text) != "here" {
		t.Errorf("%q: %v", text, err)
	}
	for _, name := range []string{"absolute/secret", "relative/secret", "etc/key", "top", "etc/far", "inner"} {
		if _, err := r.ReadFile(name, 10); !errors.Is(err, ErrOutside) {
			t.Errorf("%s: %v", name, err)
		}
		if _, err := r.Stat(name); !errors.Is(err, ErrOutside) {
			t.Errorf("%s: %v", name, err)
		}
	}
	sub, err := r.Sub("etc")
	must(t, err)
	defer sub.Close()
	if _, err := sub.ReadFile("up", 10); !errors.Is(err, ErrOutside) {
		t.Error(err)
	}
	if text, err := os.ReadFile(filepath.Join(outside, "secret")); err != nil || string(text) != "of the host" {
		t.Errorf("%q: %v", text, err)
	}
}

// TestPutWhole: a file that its caller fills has its owner, mode, attributes and time, or does not
// exist at all. Own works for a directory, and not for the target of a link.
func TestPutWhole(t *testing.T) {
	r, outside := trap(t)
	uid, gid, when := os.Geteuid(), os.Getegid(), time.Unix(1e9, 0)
	fill := func(text string, err error) func(*os.File) error {
		return func(to *os.File) error {
			_, _ = to.WriteString(text)
			return err
		}
	}
	must(t, r.Put(File{Path: "etc/filled", Fill: fill("text", nil), Uid: uid, Gid: gid, Mode: 0o750, Modified: when},
		uid, gid))
	st, err := r.Lstat("etc/filled")
	if err != nil || st.Mode&0o7777 != 0o750 || st.Size != 4 || st.Mtim.Sec != when.Unix() {
		t.Errorf("%+v, %v", st, err)
	}
	if err := r.Put(File{Path: "etc/filled", Fill: fill("other", errors.New("no more")), Uid: uid, Gid: gid,
		Mode: 0o644}, uid, gid); err == nil {
		t.Error("half a file was put")
	}
	if text, err := r.ReadFile("etc/filled", 100); err != nil || string(text) != "text" {
		t.Errorf("it holds %q: %v", text, err)
	}
	err = r.Put(File{Path: "etc/attr", Fill: fill("x", nil), Uid: uid, Gid: gid, Mode: 0o644,
		Attrs: map[string][]byte{"user.of": []byte("it")}}, uid, gid)
	if !errors.Is(err, unix.ENOTSUP) {
		must(t, err)
		f, err := r.OpenFile("etc/attr")
		must(t, err)
		defer f.Close()
		if attrs, err := FileAttributes(int(f.Fd())); err != nil || string(attrs["user.of"]) != "it" {
			t.Errorf("%q, %v", attrs, err)
		}
	}
	must(t, r.SetOwnerMode("etc", uid, gid, 0o711))
	if st, err := r.Lstat("etc"); err != nil || st.Mode&0o7777 != 0o711 {
		t.Errorf("%+v, %v", st, err)
	}
	if err := r.SetOwnerMode("inner", uid, gid, 0o700); err == nil {
		t.Error("a link was followed")
	}
	if info, err := os.Stat(outside); err != nil || info.Mode().Perm() != 0o755 {
		t.Errorf("outside is of mode %v: %v", info.Mode(), err)
	}
	if all, err := r.Names("etc", 100); err != nil || strings.Contains(strings.Join(all, " "), ".orrery") {
		t.Errorf("left are %q, %v", all, err)
	}
}

// TestAlone: Alone excludes what is mounted in a tree.
func TestAlone(t *testing.T) {
	whole, err := Open("/")
	must(t, err)
	defer whole.Close()
	alone, err := whole.WithoutMounts()
	must(t, err)
	defer alone.Close()
	if _, err := whole.Lstat("proc/version"); err != nil {
		t.Skip("nothing is mounted at /proc")
	}
	for _, name := range []string{"proc/version", "/proc", "usr/../proc/version"} {
		if _, err := alone.Lstat(name); !errors.Is(err, ErrOutside) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := alone.Lstat("etc/passwd"); err != nil && !errors.Is(err, ErrOutside) {
		t.Error(err)
	}
	must(t, whole.Close())
	if _, err := alone.Lstat("."); err != nil {
		t.Errorf("it ended with the other: %v", err)
	}
}
