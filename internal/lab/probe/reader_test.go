package probe

import (
	"encoding/json"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// lay copies a tree of files over another. Existing files keep their inode, like those of the
// kernel.
func lay(t testing.TB, from, to string) {
	t.Helper()
	err := filepath.WalkDir(from, func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, _ := filepath.Rel(from, path)
		if e.IsDir() {
			return os.MkdirAll(filepath.Join(to, rel), 0o755)
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		return os.WriteFile(filepath.Join(to, rel), text, 0o644)
	})
	if err != nil {
		t.Fatal(err)
	}
}

var groups = map[string]string{"far": "lxc/far", "near": "near", "never": "not/there"}

// TestReader reads testdata/before and then testdata/after. In between, a processor went offline
// and another came online, interfaces vanished, appeared and were recreated, 32-bit counters
// wrapped around, a cgroup was recreated, and a file disappeared.
func TestReader(t *testing.T) {
	root := t.TempDir()
	lay(t, "testdata/before", root)
	r := newReader(root, groups)
	defer r.close()
	r.read()
	lay(t, "testdata/after", root)
	s := r.read()
	s.At, s.Took, s.Self, s.Children = time.Time{}, 1, Usage{}, Usage{}
	got, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	want, err := os.ReadFile("testdata/want.json")
	if err != nil {
		t.Fatal(err)
	}
	if strings.TrimSpace(string(want)) != string(got) {
		t.Errorf("got\n%s", got)
	}
	again := r.read()
	again.At, again.Took, again.Self, again.Children, again.Load = time.Time{}, 0, Usage{}, Usage{}, Load{}
	if text, _ := json.Marshal(again); string(
		text) != `{"at":"0001-01-01T00:00:00Z","took":0,"each":[{"id":0},{"id":4}]}` {
		t.Errorf("nothing changed, but %s", text)
	}
}

// TestNothing reads a machine whose files are missing.
func TestNothing(t *testing.T) {
	r := newReader(t.TempDir(), groups)
	defer r.close()
	for range 2 {
		s := r.read()
		s.At, s.Took, s.Self, s.Children = time.Time{}, 0, Usage{}, Usage{}
		if text, _ := json.Marshal(s); string(text) != `{"at":"0001-01-01T00:00:00Z","took":0}` {
			t.Errorf("%s", text)
		}
	}
}

// TestComesLater: a cgroup, such as that of a node started later, counts from the first reading
// that finds it.
func TestComesLater(t *testing.T) {
	root := t.TempDir()
	lay(t, "testdata/before", root)
	dir := filepath.Join(root, "sys/fs/cgroup/cpuacct/late")
	set := func(ns string) {
		_ = os.MkdirAll(dir, 0o755)
		for _, name := range []string{"cpuacct.usage", "cpuacct.usage_user"} {
			if err := os.WriteFile(filepath.Join(dir, name), []byte(ns), 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
	r := newReader(root, map[string]string{"late": "late"})
	defer r.close()
	r.read()
	set("4000000000\n")
	if s := r.read(); len(s.Cgroups) > 0 {
		t.Errorf("what came before counts: %v", s.Cgroups)
	}
	set("4500000000\n")
	if s := r.read(); s.Cgroups["late"] != (Usage{User: 0.5}) {
		t.Errorf("%v", s.Cgroups)
	}
}

// TestLongFile reads a file that is longer than one read.
func TestLongFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	text := strings.Repeat("0123456789\n", 5000)
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	f := newFile(path)
	defer f.close()
	for range 2 {
		if string(f.read()) != text {
			t.Error("it differs")
		}
	}
}

func TestReadCPUAndCgroup(t *testing.T) {
	cpu, err := readCPU("testdata/before/proc/stat")
	if err != nil || cpu.Busy != 13800*time.Millisecond || cpu.Total != 414370*time.Millisecond {
		t.Errorf("%+v %v", cpu, err)
	}
	if _, err := readCPU("testdata/none"); err == nil || !strings.Contains(err.Error(), "testdata/none") {
		t.Error(err)
	}
	if _, err := readCPU("testdata/before/proc/loadavg"); err == nil {
		t.Error("no processors, no error")
	}
	for path, want := range map[string]time.Duration{"lxc/far": 5 * time.Second, "/near": 3 * time.Second} {
		c := newCgroup(findHierarchy("testdata/before"), path)
		defer c.close()
		if got, ok := c.read(); !ok || time.Duration(got.user+got.system) != want {
			t.Errorf("%s: %+v %t", path, got, ok)
		}
	}
	none := newCgroup(findHierarchy("testdata/before"), "none")
	defer none.close()
	if got, ok := none.read(); ok {
		t.Errorf("of no cgroup: %+v", got)
	}
}

// TestDelta: the increase of a counter is found, even if the counter wraps around.
func TestDelta(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		before := rapid.Uint32().Draw(t, "before")
		by := rapid.Uint32Range(0, 1<<31-1).Draw(t, "by")
		if got := increase32(uint64(before+by), uint64(before)); got != uint64(by) {
			t.Fatalf("%d, not %d", got, by)
		}
		long := rapid.Uint64Range(0, 1<<63).Draw(t, "long")
		if got := increase(long+uint64(by), long); got != uint64(by) {
			t.Fatalf("%d, not %d", got, by)
		}
		if now := rapid.Uint64Range(0, long).Draw(t, "anew"); now < long && increase(now, long) != now {
			t.Fatal("what begins anew counts from nothing")
		}
	})
	if got := increase32(5, 1<<40); got != 5 {
		t.Error(got)
	}
	if got := increase32(7, 1000); got != 7 {
		t.Errorf("begun anew: %d", got)
	}
}

// TestAnyText: no text in the kernel's files makes a reader panic.
func TestAnyText(t *testing.T) {
	root := t.TempDir()
	var paths []string
	_ = filepath.WalkDir("testdata/before", func(path string, e fs.DirEntry, err error) error {
		if err == nil && !e.IsDir() {
			rel, _ := filepath.Rel("testdata/before", path)
			paths = append(paths, rel)
		}
		return err
	})
	lay(t, "testdata/before", root)
	rapid.Check(t, func(t *rapid.T) {
		r := newReader(root, groups)
		defer r.close()
		r.read()
		path := rapid.SampledFrom(paths).Draw(t, "path")
		text, _ := os.ReadFile(filepath.Join("testdata/before", path))
		cut := rapid.IntRange(0, len(text)).Draw(t, "cut")
		broken := string(text[:cut]) + rapid.String().Draw(t, "more") + string(text[cut:])
		if err := os.WriteFile(filepath.Join(root, path), []byte(broken), 0o644); err != nil {
			t.Fatal(err)
		}
		r.read()
		_ = os.WriteFile(filepath.Join(root, path), text, 0o644)
		r.read()
	})
}
