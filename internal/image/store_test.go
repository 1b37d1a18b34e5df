package image

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"orrery/internal/host"
	"orrery/internal/problem"
	"orrery/internal/site"
	"orrery/internal/site/distro"
	"orrery/internal/site/spec"
	"orrery/internal/tree"
	"orrery/test/need"
)

// importedStore returns a store with one imported base.
func importedStore(t *testing.T) (*Store, *spec.Layer) {
	t.Helper()
	s := Open(t.TempDir())
	l := importOf(writeFile(t, "root.tar", tarred(t, small...)), "1")
	if err := s.BuildBase(t.Context(), l, site.Mirror{}, sayTo(t)); err != nil {
		t.Fatal(err)
	}
	return s, l
}

// onTop adds a layer to the store as a build would, without a container.
func onTop(t *testing.T, s *Store, base *spec.Layer, name string) *spec.Layer {
	t.Helper()
	l := &spec.Layer{Digest: spec.Digest(name), Title: base.Title + " + " + name, Base: base.Digest,
		Parts: spec.PartDigests{"name": name}}
	g, err := s.stage(t.Context(), l)
	if err != nil {
		t.Fatal(err)
	}
	defer g.close()
	in, err := tree.Open(mkdir(t, g.dir, "tree"))
	must(t, err)
	defer in.Close()
	if err := writeFiles(in, distro.File{Path: "/opt/" + name, Text: name}); err != nil {
		t.Fatal(err)
	}
	if err := g.finish(t.Context(), newRecord(l, time.Now()), time.Now(), sayTo(t)); err != nil {
		t.Fatal(err)
	}
	return l
}

func mkdir(t *testing.T, parts ...string) string {
	t.Helper()
	dir := filepath.Join(parts...)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	return dir
}

func TestListAndGC(t *testing.T) {
	s, base := importedStore(t)
	a, b := onTop(t, s, base, "a"), onTop(t, s, base, "b")
	other := importOf(writeFile(t, "other.tar", tarred(t, small...)), "2")
	if err := s.BuildBase(t.Context(), other, site.Mirror{}, sayTo(t)); err != nil {
		t.Fatal(err)
	}
	all, err := s.List()
	if err != nil || len(all) != 4 || all[2].Digest != a.Digest || all[3].Digest != b.Digest {
		t.Fatalf("list %v, %v", all, err)
	}
	for _, info := range all[:2] {
		if info.Digest == base.Digest && len(info.UsedBy) != 2 || info.Digest == other.Digest && len(info.UsedBy) != 0 {
			t.Errorf("%s is used by %v", info.Title, info.UsedBy)
		}
		if info.Size == 0 || info.Content == "" || info.By == "" || info.Built.IsZero() {
			t.Errorf("incomplete: %+v", info)
		}
	}
	stale := mkdir(t, s.stagings, "0123456789abcdef")
	half := mkdir(t, s.Dir, "fedcba9876543210")
	mkdir(t, half, "tree")
	// One process builds on the other base now, and one builds a layer.
	building, err := host.TryLock(s.locks.of(other.Digest), host.Shared)
	if err != nil {
		t.Fatal(err)
	}
	live := mkdir(t, s.stagings, "aaaabbbbcccc")
	builds, err := host.TryLock(s.locks.of("aaaabbbbcccc"), host.Exclusive)
	if err != nil {
		t.Fatal(err)
	}
	removed, err := s.GC(t.Context(), map[string]bool{a.Digest: true})
	if err != nil || len(removed) != 1 || removed[0].Digest != b.Digest {
		t.Fatalf("removed %v, %v", removed, err)
	}
	for _, dir := range []string{stale, half, filepath.Join(s.Dir, b.Digest)} {
		if _, err := os.Stat(dir); err == nil {
			t.Errorf("%s is still there", dir)
		}
	}
	if _, err := os.Stat(live); err != nil {
		t.Error("the staging of a live builder was removed")
	}
	building.Release()
	builds.Release()
	if removed, err = s.GC(t.Context(), nil); err != nil || len(removed) != 3 {
		t.Fatalf("removed %v, %v", removed, err)
	}
	for _, dir := range []string{s.stagings, s.locks.dir} {
		if left, _ := os.ReadDir(dir); len(left) > 0 {
			t.Errorf("%s holds %v", dir, left)
		}
	}
}

func TestGCTrimsCache(t *testing.T) {
	s := Open(t.TempDir())
	deb := filepath.Join(mkdir(t, s.Cache.archives()), "a.deb")
	if err := os.WriteFile(deb, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if err := s.Cache.trim(time.Now()); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(deb); err != nil {
		t.Error("a fresh package was removed")
	}
	if err := s.Cache.trim(time.Now().Add(cacheAge + time.Hour)); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(deb); err == nil {
		t.Error("an old package was kept")
	}
}

func TestVerify(t *testing.T) {
	for name, test := range map[string]struct {
		change func(tree string) error
		want   string
	}{
		"nothing": {func(string) error { return nil }, ""},
		"times":   {func(tree string) error { return os.Chtimes(tree+"/etc/os-release", time.Now(), time.Now()) }, ""},
		"content": {func(tree string) error { return os.WriteFile(tree+"/home/u/f", []byte("v"), 0o644) },
			"/home/u/f has changed"},
		"mode":  {func(tree string) error { return os.Chmod(tree+"/home/u/f", 0o600) }, "/home/u/f has changed"},
		"gone":  {func(tree string) error { return os.Remove(tree + "/home/u/f") }, "/home/u/f is gone"},
		"added": {func(tree string) error { return os.WriteFile(tree+"/home/u/new\nline", nil, 0o644) }, "was added"},
		"the first": {func(tree string) error {
			return errors.Join(os.Remove(tree+"/usr/sbin/sshd"), os.Remove(tree+"/etc/hosts"), os.Chmod(tree+"/home/u/f", 0o600))
		}, "/etc/hosts is gone"},
	} {
		t.Run(name, func(t *testing.T) {
			s, l := importedStore(t)
			if err := test.change(s.Tree(l.Digest)); err != nil {
				t.Fatal(err)
			}
			err := s.Verify(t.Context(), l.Digest)
			if test.want == "" && err != nil || test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)) {
				t.Errorf("got %v, want %q", err, test.want)
			}
		})
	}
	if err := Open(t.TempDir()).Verify(t.Context(), "0123"); problem.ExitCode(err) != 1 {
		t.Errorf("an unknown layer: %v", err)
	}
}

// TestContentDigest: the digest is the same for the same content, and differs for everything a node
// could tell apart.
func TestContentDigest(t *testing.T) {
	make := func(change func(dir string)) string {
		dir := t.TempDir()
		mkdir(t, dir, "d")
		os.WriteFile(dir+"/d/f", []byte("x"), 0o644)
		os.Symlink("f", dir+"/d/l")
		if change != nil {
			change(dir)
		}
		lines, _, err := scan(t.Context(), dir, digestQuietly)
		if err != nil {
			t.Fatal(err)
		}
		return lines.digest()
	}
	same := make(nil)
	if make(nil) != same {
		t.Error("it depends on where and when the tree was made")
	}
	changes := map[string]func(string){
		"content": func(d string) { os.WriteFile(d+"/d/f", []byte("y"), 0o644) },
		"name":    func(d string) { os.Rename(d+"/d/f", d+"/d/g") },
		"mode":    func(d string) { os.Chmod(d+"/d/f", 0o755) },
		"sticky":  func(d string) { os.Chmod(d+"/d", 0o755|os.ModeSticky) },
		"link":    func(d string) { os.Remove(d + "/d/l"); os.Symlink("g", d+"/d/l") },
		"type":    func(d string) { os.Remove(d + "/d/l"); os.WriteFile(d+"/d/l", []byte("f"), 0o777) },
		"empty":   func(d string) { os.Mkdir(d+"/e", 0o755) },
		"user":    func(d string) { unix.Setxattr(d+"/d/f", "user.note", []byte("x"), 0) },
	}
	if os.Geteuid() == 0 {
		changes["owner"] = func(d string) { os.Lchown(d+"/d/l", 7, 0) }
		changes["whiteout"] = func(d string) { unix.Mknod(d+"/d/w", unix.S_IFCHR, 0) }
		changes["device"] = func(d string) { unix.Mknod(d+"/d/w", unix.S_IFCHR, int(unix.Mkdev(1, 3))) }
		changes["opaque"] = func(d string) { unix.Setxattr(d+"/d", "trusted.overlay.opaque", []byte("y"), 0) }
	}
	seen := map[string]string{same: "the tree itself"}
	for _, name := range slices.Sorted(maps.Keys(changes)) {
		digest := make(changes[name])
		if other, ok := seen[digest]; ok {
			t.Errorf("%s gives the digest of %s", name, other)
		}
		seen[digest] = name
	}
	if os.Geteuid() == 0 && make(func(d string) {
		unix.Setxattr(d+"/d", "trusted.overlay.origin", []byte("x"), 0)
	}) != same {
		t.Error("overlayfs's notes are taken for content")
	}
}

// TestFullDisk: the problem says what is needed and what is free, and nothing remains.
func TestFullDisk(t *testing.T) {
	s, base := importedStore(t)
	s.disk.free = func(string) (uint64, error) { return 100 << 20, nil }
	l := &spec.Layer{Digest: "abc123", Title: "x", Base: base.Digest}
	never := func(context.Context, host.Runner) error { t.Error("filled"); return nil }
	for name, err := range map[string]error{
		"base":  s.BuildBase(t.Context(), importOf("/x", "9"), site.Mirror{}, sayTo(t)),
		"layer": s.BuildLayer(t.Context(), l, site.Mirror{}, never, sayTo(t)),
	} {
		text := fmt.Sprint(err)
		if problem.ExitCode(err) != int(problem.Unable) || !strings.Contains(text, "100 MiB free") ||
			!strings.Contains(text, "orrery image gc") {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, err := range []error{
		fmt.Errorf("write: %w", unix.ENOSPC),
		&host.RunError{Command: []string{"dpkg"}, Status: 2, Output: "cannot copy: No space left on device"},
		problem.New(problem.Failed, "step failed").Because(unix.ENOSPC),
	} {
		if got := s.disk.explain(err, minLayerSpace); problem.ExitCode(got) != int(problem.Unable) || !errors.Is(got, err) {
			t.Errorf("%v became %v", err, got)
		}
	}
	if left, _ := os.ReadDir(s.stagings); len(left) > 0 {
		t.Errorf("%v is left", left)
	}
}

// TestFullDiskForReal imports into a file system that is too small.
func TestFullDiskForReal(t *testing.T) {
	need.Integration(t)
	state := t.TempDir()
	if err := unix.Mount("orrery-test", state, "tmpfs", 0, "size=2m"); err != nil {
		t.Skip("cannot mount: " + err.Error())
	}
	t.Cleanup(func() { unix.Unmount(state, unix.MNT_DETACH) })
	s := Open(state)
	s.disk.free = func(string) (uint64, error) { return 1 << 40, nil }
	big := append([]item{{name: "etc/big", text: strings.Repeat("x", 4<<20)}}, small...)
	err := s.BuildBase(t.Context(), importOf(writeFile(t, "f", tarred(t, big...)), "1"), site.Mirror{}, sayTo(t))
	if problem.ExitCode(err) != int(problem.Unable) || !strings.Contains(err.Error(), "is full") {
		t.Errorf("got %v", err)
	}
	if left, _ := os.ReadDir(s.stagings); len(left) > 0 {
		t.Errorf("%v is left", left)
	}
}

// TestHalfLayer: a power failure could leave a layer without its content if the rename reached the
// disk first. That is not a layer and is built again.
func TestHalfLayer(t *testing.T) {
	s := Open(t.TempDir())
	l := importOf(writeFile(t, "root.tar", tarred(t, small...)), "1")
	mkdir(t, s.Tree(l.Digest), "etc")
	if whole, err := s.Layers(); err != nil || len(whole) != 0 {
		t.Fatalf("layers %v, %v", whole, err)
	}
	mkdir(t, s.stagings, l.Digest, "tree", "left")
	if err := s.BuildBase(t.Context(), l, site.Mirror{}, sayTo(t)); err != nil {
		t.Fatal(err)
	}
	if whole, err := s.Layers(); err != nil || !whole[l.Digest] {
		t.Fatalf("layers %v, %v", whole, err)
	}
	if _, err := os.Stat(s.Tree(l.Digest) + "/left"); err == nil {
		t.Error("what a killed builder left got into the layer")
	}
	if err := s.Verify(t.Context(), l.Digest); err != nil {
		t.Error(err)
	}
}

// TestBaseMissing: the base of a layer was removed after the plan.
func TestBaseMissing(t *testing.T) {
	s := Open(t.TempDir())
	err := s.BuildLayer(t.Context(), &spec.Layer{Digest: "ab", Title: "x", Base: "cd"}, site.Mirror{}, nil, sayTo(t))
	if problem.ExitCode(err) != int(problem.Failed) ||
		!strings.Contains(err.Error(), "layer cd below it is not in the store") {
		t.Errorf("got %v", err)
	}
}
