package hostsfile

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"pgregory.net/rapid"

	"orrery/internal/host"
	"orrery/internal/problem"
)

const others = "127.0.0.1 localhost\n# a comment\n10.1.2.3 printer"

// room returns a hosts file with lines of others, in a directory of its own.
func room(t testing.TB) File {
	t.Helper()
	dir := t.TempDir()
	f := File{Path: filepath.Join(dir, "hosts"), Lock: filepath.Join(dir, "run", "hosts.lock"),
		Dirs: host.Dirs{State: filepath.Join(dir, "state"), Run: filepath.Join(dir, "run")}}
	if err := os.WriteFile(f.Path, []byte(others), 0o640); err != nil {
		t.Fatal(err)
	}
	return f
}

func (f File) wants(t testing.TB, want string) {
	t.Helper()
	got, err := os.ReadFile(f.Path)
	if err != nil || string(got) != want {
		t.Errorf("%s (%v):\n%s\nwant:\n%s", f.Path, err, got, want)
	}
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

const (
	a = "10.8.1.11 portal.a\n"
	b = "10.8.2.11 portal.b db.b\n"
)

func block(key, text string) string {
	return "# BEGIN orrery " + key + "\n" + text + "# END orrery " + key + "\n"
}

// TestOptIn: the file stays as it is until the administrator wants names, then it has those of all
// sites, and without them it is as before.
//
// Promise (Networks): `/etc/hosts` changes only if the administrator wants it, and only between the
// marked lines; links are refused; twins have no names there. With
// host/hostsfile.TestLinesOfOthers, host/hostsfile.TestRefused, host/hostsfile.TestOtherEditor,
// plan.TestHostNamesOfTwins.
func TestOptIn(t *testing.T) {
	f, ctx := room(t), t.Context()
	must(t, f.Set(ctx, "a", []byte(a)))
	f.wants(t, others)
	if f.Enabled() {
		t.Error("enabled before Enable")
	}
	if must(t, f.Enable(ctx)); !f.Enabled() {
		t.Error("not enabled")
	}
	f.wants(t, others+"\n"+block("a", a))
	must(t, f.Set(ctx, "b", []byte(b)))
	f.wants(t, others+"\n"+block("a", a)+block("b", b))
	must(t, f.Set(ctx, "a", []byte(b)))
	f.wants(t, others+"\n"+block("a", b)+block("b", b))
	if got, err := f.Names("a"); err != nil || string(got) != b {
		t.Errorf("Names: %q, %v", got, err)
	}
	must(t, f.Set(ctx, "a", nil))
	f.wants(t, others+"\n"+block("b", b))
	if got, err := f.Names("a"); err != nil || got != nil {
		t.Errorf("Names: %q, %v", got, err)
	}
	must(t, f.Disable(ctx))
	f.wants(t, others+"\n")
	must(t, f.Set(ctx, "b", []byte(a)))
	f.wants(t, others+"\n")
	must(t, f.Disable(ctx)) // again
}

// TestStale: blocks of sites that the machine no longer has go with Disable.
func TestStale(t *testing.T) {
	f := room(t)
	must(t, os.WriteFile(f.Path, []byte(block("gone", a)+others+"\n"), 0o644))
	must(t, f.Disable(t.Context()))
	f.wants(t, others+"\n")
}

// TestKeepsOwnerAndMode: the new file has owner and mode of the old one, and no other file is left.
func TestKeepsOwnerAndMode(t *testing.T) {
	f := room(t)
	if os.Geteuid() == 0 {
		must(t, os.Chown(f.Path, 1234, 2345))
	}
	before, err := os.Stat(f.Path)
	must(t, err)
	must(t, f.Enable(t.Context()))
	must(t, f.Set(t.Context(), "a", []byte(a)))
	after, err := os.Stat(f.Path)
	must(t, err)
	x, y := before.Sys().(*syscall.Stat_t), after.Sys().(*syscall.Stat_t)
	if before.Mode() != after.Mode() || x.Uid != y.Uid || x.Gid != y.Gid || x.Ino == y.Ino {
		t.Errorf("%v %d:%d, then %v %d:%d", before.Mode(), x.Uid, x.Gid, after.Mode(), y.Uid, y.Gid)
	}
	files, err := filepath.Glob(filepath.Join(filepath.Dir(f.Path), "*hosts*"))
	if must(t, err); len(files) != 1 {
		t.Errorf("left: %v", files)
	}
}

// TestRefused: a link, a directory, a pipe and a broken block are left alone, and nothing is enabled.
func TestRefused(t *testing.T) {
	for what, c := range map[string]struct {
		make func(path string) error
		want string
	}{
		"link":          {func(path string) error { return os.Symlink("/etc/passwd", path) }, "symbolic link"},
		"dangling link": {func(path string) error { return os.Symlink(path+".not", path) }, "symbolic link"},
		"directory":     {func(path string) error { return os.Mkdir(path, 0o755) }, "not a regular file"},
		"pipe":          {func(path string) error { return syscall.Mkfifo(path, 0o644) }, "not a regular file"},
		"large": {func(path string) error {
			return os.WriteFile(path, make([]byte, maxBytes+1), 0o644)
		}, "larger than 16 MiB"},
		"no end": {func(path string) error {
			return os.WriteFile(path, []byte("\n"+first+"a\n"+a), 0o644)
		}, "hosts:2: the block of site \"a\" has no last line"},
		"end of another": {func(path string) error {
			return os.WriteFile(path, []byte(first+"a\n"+last+"b\n"), 0o644)
		}, "has no last line"},
		"begins twice": {func(path string) error {
			return os.WriteFile(path, []byte(first+"a\n"+first+"a\n"+last+"a\n"), 0o644)
		}, "hosts:1: the block of site \"a\" has no last line"},
	} {
		t.Run(what, func(t *testing.T) {
			f := room(t)
			must(t, f.Set(t.Context(), "b", []byte(b)))
			must(t, os.Remove(f.Path))
			must(t, c.make(f.Path))
			before, err := os.Lstat(f.Path)
			must(t, err)
			err = f.Enable(t.Context())
			if !problem.Is(err, problem.Unable) || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error: %v", err)
			}
			after, err := os.Lstat(f.Path)
			if err != nil || !os.SameFile(before, after) || f.Enabled() {
				t.Errorf("changed (%v), enabled: %v", err, f.Enabled())
			}
		})
	}
}

// TestNoFile: a machine without a hosts file gets one.
func TestNoFile(t *testing.T) {
	f := room(t)
	must(t, os.Remove(f.Path))
	must(t, f.Set(t.Context(), "a", []byte(a)))
	must(t, f.Enable(t.Context()))
	f.wants(t, block("a", a))
}

// TestReadOnly: a directory that cannot be written to is a problem that says how to go on.
func TestReadOnly(t *testing.T) {
	f := room(t)
	must(t, f.Set(t.Context(), "a", []byte(a)))
	f.Path = filepath.Join(filepath.Dir(f.Path), "missing", "hosts")
	err := f.Enable(t.Context())
	if !problem.Is(err, problem.Failed) || !strings.Contains(err.Error(), "orrery names --uninstall") {
		t.Errorf("error: %v", err)
	}
}

// TestOtherEditor: what another program writes while the file is edited is not lost.
func TestOtherEditor(t *testing.T) {
	f := room(t)
	old, err := f.read()
	must(t, err)
	must(t, os.WriteFile(f.Path, []byte(others+"\n10.9.9.9 added\n"), 0o640))
	if err := f.replace(old, []byte("lost")); err != errChanged {
		t.Errorf("error: %v", err)
	}
	must(t, f.Enable(t.Context()))
	must(t, f.Set(t.Context(), "a", []byte(a)))
	f.wants(t, others+"\n10.9.9.9 added\n"+block("a", a))
}

// TestManyAtOnce: sites that come up at once all have their names.
func TestManyAtOnce(t *testing.T) {
	f := room(t)
	must(t, f.Enable(t.Context()))
	var all sync.WaitGroup
	for i := range 20 {
		all.Go(func() {
			if err := f.Set(t.Context(), fmt.Sprint("s", i), []byte(a)); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	text, err := os.ReadFile(f.Path)
	must(t, err)
	if n := strings.Count(string(text), first); n != 20 || !strings.HasPrefix(string(text), others+"\n") {
		t.Errorf("%d blocks in\n%s", n, text)
	}
}

// TestLinesOfOthers: whatever the file contains, an edit changes nothing outside the blocks, and
// removing all blocks is complete.
func TestLinesOfOthers(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		line := rapid.SampledFrom([]string{"127.0.0.1 x\n", "\n", last + "a\n", "#", " # BEGIN orrery\n", "\r\n", "\x00\n",
			block("a", a), block("b", ""), strings.ReplaceAll(block("c", b), "\n", "\r\n")})
		text := strings.Join(rapid.SliceOfN(line, 0, 8).Draw(t, "lines"), "")
		parts, err := File{}.parse([]byte(text))
		if err != nil {
			return
		}
		var foreign, whole strings.Builder
		for _, p := range parts {
			whole.WriteString(p.text)
			if p.key == "" {
				foreign.WriteString(p.text)
			}
		}
		if whole.String() != text {
			t.Fatalf("%q was split into %q", text, parts)
		}
		if bare := compose(parts, func(string) ([]byte, bool) { return nil, true }, nil); string(bare) != foreign.String() {
			t.Fatalf("%q without blocks: %q", text, bare)
		}
		set := compose(parts, func(key string) ([]byte, bool) { return []byte(b), key == "a" }, []string{"a"})
		again, err := File{}.parse(set)
		if err != nil {
			t.Fatal(err)
		}
		n := 0
		for _, p := range again {
			if p.key == "a" {
				if n++; string(p.lines()) != b {
					t.Fatalf("block: %q", p.text)
				}
			}
		}
		if n != 1 {
			t.Fatalf("%d blocks of a in %q", n, set)
		}
	})
}
