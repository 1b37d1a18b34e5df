package snapshot

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"orrery/internal/engine"
	"orrery/internal/engine/nodedir"
	"orrery/internal/host"
	"orrery/internal/observe"
	"orrery/internal/site"
	"orrery/internal/site/spec"
	"orrery/internal/volume"
)

// machines is an engine whose nodes are directories with a counter that increases while they are
// not frozen.
type machines struct {
	engine.Engine
	dirs     host.Dirs
	nodes    []observe.Node
	lock     sync.Mutex
	frozen   map[int]bool
	stubborn string // the method that fails
	marks    []string
}

func (m *machines) List(context.Context, string) ([]observe.Node, error) { return m.nodes, nil }
func (m *machines) Private(ref engine.Ref) string                        { return m.kept().Private(ref) }
func (m *machines) Fill(ref engine.Ref, dir string) error                { return m.kept().Fill(ref, dir) }
func (m *machines) kept() *nodedir.Nodes                                 { return &nodedir.Nodes{Dirs: m.dirs} }
func (m *machines) Freeze(_ context.Context, ref engine.Ref) error       { return m.set(ref, "Freeze", true) }
func (m *machines) Thaw(ctx context.Context, ref engine.Ref) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return m.set(ref, "Thaw", false)
}

func (m *machines) set(ref engine.Ref, method string, to bool) error {
	m.lock.Lock()
	defer m.lock.Unlock()
	if m.stubborn == method && ref.ID == 2 {
		return errors.New(method + " fails")
	}
	m.frozen[ref.ID] = to
	return nil
}

func (m *machines) SetProgress(_ context.Context, ref engine.Ref, mark engine.Progress) error {
	m.marks = append(m.marks, fmt.Sprint(ref.Name, mark.Configured, mark.Proven))
	if m.stubborn == "SetProgress" {
		return errors.New("Mark fails")
	}
	return nil
}

// farm returns three nodes, of which the first two run, and volumes: one for each node, and one
// that the last two share.
func farm(t *testing.T) (*machines, Options) {
	t.Helper()
	dirs := host.Dirs{State: t.TempDir(), Run: t.TempDir()}
	m := &machines{dirs: dirs, frozen: map[int]bool{}}
	o := Options{Dirs: dirs, Key: "karoo", Engines: map[string]engine.Engine{"fake": m}, Who: "ada"}
	for id := 1; id <= 3; id++ {
		n := spec.Node{Site: "karoo", Name: fmt.Sprint("n", id), ID: id, Engine: "fake",
			Mounts: []spec.Mount{{Volume: "data"}}}
		if id > 1 {
			n.Mounts = append(n.Mounts, spec.Mount{Volume: "common", Shared: true},
				spec.Mount{Volume: "far", Remote: site.Remote{NFS: "server:/x"}})
		}
		state := observe.Running
		if id == 3 {
			state = observe.Stopped
		}
		m.nodes = append(m.nodes, observe.Node{Node: n, State: state})
		r := &nodedir.Record{Node: n, Configured: true, Proven: "x"}
		o.Nodes = append(o.Nodes, r)
		put(t, filepath.Join(m.Private(engine.RefOf(&n)), "etc", "hostname"), n.Name)
		put(t, filepath.Join(dirs.Volumes("karoo"), "data", n.Name, "rows"), "rows of "+n.Name)
		if err := nodedir.Of(dirs, "karoo", id).Write(r); err != nil {
			t.Fatal(err)
		}
	}
	put(t, filepath.Join(dirs.Volumes("karoo"), "common", "@all", "x"), "common")
	return m, o
}

func put(t *testing.T, path, text string) {
	t.Helper()
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), 0o644)); err != nil {
		t.Fatal(err)
	}
}

func got(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Error(err)
	}
	return string(text)
}

func TestTake(t *testing.T) {
	m, o := farm(t)
	s, err := Take(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	if m.frozen[1] || m.frozen[2] || len(m.frozen) != 2 {
		t.Errorf("frozen: %v", m.frozen)
	}
	if s.Pause <= 0 || s.Pause > 5 || s.Skew < 0 || s.Skew > s.Pause || s.Who != "ada" ||
		time.Since(s.Time) > time.Minute {
		t.Errorf("got %+v", s)
	}
	if len(s.Omitted) != 2 || !strings.Contains(s.Omitted[0], "far of n2") {
		t.Errorf("omitted is %q", s.Omitted)
	}
	opened, err := Open(o.Dirs, "karoo", s.ID)
	if err != nil || len(opened.Nodes) != 3 || !opened.Nodes[0].Running || opened.Nodes[2].Running ||
		opened.Nodes[0].How == "" {
		t.Fatalf("opened %+v (%v)", opened, err)
	}
	for path, want := range map[string]string{
		opened.PrivateDir(2) + "/etc/hostname":                                       "n2",
		opened.VolumeDir(Volume{Name: "data", Node: "n3"}) + "/rows":                 "rows of n3",
		opened.VolumeDir(Volume{Name: "common", Node: volume.SharedDir}) + "/x":      "common",
		filepath.Join(o.Dirs.Snapshots("karoo"), s.ID, "nodes/1/upper/etc/hostname"): "n1",
	} {
		if text := got(t, path); text != want {
			t.Errorf("%s holds %q", path, text)
		}
	}
	second, err := Take(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	all, err := List(o.Dirs, "karoo")
	if err != nil || len(all) != 2 || all[0].ID != s.ID || all[1].ID != second.ID {
		t.Errorf("listed are %v (%v)", all, err)
	}
	if err := Remove(o.Dirs, "karoo", s.ID); err != nil {
		t.Error(err)
	}
	for _, id := range []string{s.ID, "", "..", "../karoo", ".x"} {
		if _, err := Open(o.Dirs, "karoo", id); err == nil {
			t.Errorf("%q was opened", id)
		}
		if err := Remove(o.Dirs, "karoo", id); err == nil {
			t.Errorf("%q was removed", id)
		}
	}
}

// TestTakeFails: after a failure, no node stays frozen, and nothing is stored.
func TestTakeFails(t *testing.T) {
	for _, method := range []string{"Freeze", "Thaw"} {
		m, o := farm(t)
		m.stubborn = method
		if _, err := Take(t.Context(), o); err == nil || !strings.Contains(err.Error(), method+" fails") {
			t.Errorf("%s: %v", method, err)
		}
		if m.frozen[1] || m.frozen[2] && method != "Thaw" {
			t.Errorf("%s: frozen are %v", method, m.frozen)
		}
		if left, _ := os.ReadDir(o.Dirs.Snapshots("karoo")); len(left) > 0 {
			t.Errorf("%s: %v is left", method, left)
		}
	}
}

func TestPutBack(t *testing.T) {
	m, o := farm(t)
	s, err := Take(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	name, rows := m.Private(engine.Ref{Site: "karoo", ID: 1})+"/etc/hostname",
		filepath.Join(o.Dirs.Volumes("karoo"), "data", "n1", "rows")
	common := filepath.Join(o.Dirs.Volumes("karoo"), "common", "@all", "x")
	gone := filepath.Join(o.Dirs.Volumes("karoo"), "data", "n2")
	spoil := func() {
		put(t, name, "spoilt")
		put(t, rows, "spoilt")
		put(t, common, "spoilt")
		if err := os.RemoveAll(gone); err != nil {
			t.Fatal(err)
		}
	}
	state := func() string {
		_, err := os.Stat(gone)
		return strings.Join([]string{got(t, name), got(t, rows), got(t, common), fmt.Sprint(err == nil)}, ", ")
	}
	const spoilt, whole = "spoilt, spoilt, spoilt, false", "n1, rows of n1, common, true"
	spoil()

	m.stubborn = "SetProgress"
	if _, err := s.Restore(t.Context(), o.Dirs, o.Engines, nil); err == nil || state() != spoilt {
		t.Errorf("after a failure there is %s (%v)", state(), err)
	}
	m.stubborn = ""
	r, err := s.Restore(t.Context(), o.Dirs, o.Engines, nil)
	if err != nil || state() != whole || !slices.Contains(m.marks, "n1true") {
		t.Fatalf("put back is %s (%v), marks %q", state(), err, m.marks)
	}
	if err := r.Undo(t.Context()); err != nil || state() != spoilt {
		t.Errorf("taken back is %s (%v)", state(), err)
	}
	// The next run undoes the restore of one that was killed.
	if _, err = s.Restore(t.Context(), o.Dirs, o.Engines, nil); err != nil {
		t.Fatal(err)
	}
	if id, nodes, err := Interrupted(o.Dirs, "karoo"); id != s.ID || len(nodes) != 3 || err != nil {
		t.Errorf("unfinished is %q with %v (%v)", id, nodes, err)
	}
	if _, err := s.Restore(t.Context(), o.Dirs, o.Engines, map[string]bool{"n1": true}); err == nil ||
		!strings.Contains(err.Error(), "was interrupted") {
		t.Errorf("a part of what was cut short gives %v", err)
	}
	if err := Remove(o.Dirs, "karoo", s.ID); err == nil || !strings.Contains(err.Error(), "was interrupted") {
		t.Errorf("its removal gives %v", err)
	}
	if _, err := Take(t.Context(), o); err == nil || !strings.Contains(err.Error(), "was interrupted") {
		t.Errorf("a snapshot in the middle gives %v", err)
	}
	if err := Recover(o.Dirs, "karoo"); err != nil || state() != spoilt {
		t.Errorf("recovered is %s (%v)", state(), err)
	}
	if r, err = s.Restore(t.Context(), o.Dirs, o.Engines, nil); err != nil {
		t.Fatal(err)
	}
	if err := r.DiscardFormer(t.Context()); err != nil || state() != whole {
		t.Errorf("settled is %s (%v)", state(), err)
	}
	if left, _ := filepath.Glob(filepath.Join(o.Dirs.Volumes("karoo"), "*", ".*")); len(left) > 0 {
		t.Errorf("%v is left", left)
	}
	// Volumes of nodes that are not restored are not touched.
	spoil()
	r, err = s.Restore(t.Context(), o.Dirs, o.Engines, map[string]bool{"n1": true, "n2": true})
	if err != nil || state() != "n1, rows of n1, spoilt, true" || len(r.Left) != 1 {
		t.Errorf("put back is %s (%v), left %q", state(), err, r.Left)
	}
}

// TestTakeSharers: a node that shares a volume with a node of the snapshot is frozen, too, although
// it is not in the snapshot.
func TestTakeSharers(t *testing.T) {
	m, o := farm(t)
	o.Nodes = o.Nodes[2:] // it does not run, and shares a volume with n2, which does
	guarded := ""
	o.Guard = func(nodes ...*spec.Node) (func(), error) {
		for _, n := range nodes {
			guarded += n.Name
		}
		return func() { guarded += " let go" }, nil
	}
	s, err := Take(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	if _, stood := m.frozen[2]; !stood || m.frozen[2] || len(m.frozen) != 1 || s.Pause <= 0 {
		t.Errorf("frozen: %v, %+v", m.frozen, s)
	}
	if guarded != "n2 let go" || len(s.Nodes) != 1 {
		t.Errorf("guarded: %q, in it %v", guarded, s.Nodes)
	}
}

// TestTakeHostile: a node whose files cannot be copied does not prevent the snapshot of a site. The
// snapshot lists what is not in it.
//
// Promise (Trees that others write): A tree that is too deep or too large is left out of a copy and
// reported. With volume.TestBeyond, backup.TestDeep.
func TestTakeHostile(t *testing.T) {
	_, o := farm(t)
	deep := filepath.Join(o.Dirs.Volumes("karoo"), "data", "n1")
	dig(t, deep, 2100)
	s, err := Take(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	if len(s.Left) != 1 || !strings.HasPrefix(s.Left[0], "volume data of n1: d/d/") ||
		!strings.Contains(s.Left[0], "more than 2048 nested directories") || len(s.Left[0]) > 400 {
		t.Errorf("left is %q", s.Left)
	}
	opened, err := Open(o.Dirs, "karoo", s.ID)
	if err != nil || !slices.Equal(opened.Left, s.Left) {
		t.Errorf("opened %+v (%v)", opened, err)
	}
	for path, want := range map[string]string{
		opened.VolumeDir(Volume{Name: "data", Node: "n1"}) + "/rows": "rows of n1",
		opened.PrivateDir(1) + "/etc/hostname":                       "n1",
	} {
		if text := got(t, path); text != want {
			t.Errorf("%s holds %q", path, text)
		}
	}
	if err := errors.Join(Remove(o.Dirs, "karoo", s.ID), volume.Erase(deep)); err != nil {
		t.Error(err)
	}
	if names, _ := os.ReadDir(o.Dirs.Snapshots("karoo")); len(names) > 0 {
		t.Errorf("%v is left", names)
	}
}

// dig makes nested directories.
func dig(t *testing.T, top string, levels int) {
	t.Helper()
	at, err := unix.Open(top, unix.O_RDONLY|unix.O_DIRECTORY, 0)
	for range levels {
		if err == nil {
			err = unix.Mkdirat(at, "d", 0o755)
		}
		next, badly := unix.Openat(at, "d", unix.O_RDONLY|unix.O_DIRECTORY, 0)
		err = errors.Join(err, badly, unix.Close(at))
		at = next
	}
	if err := errors.Join(err, unix.Close(at)); err != nil {
		t.Fatal(err)
	}
}
