package nodedir

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"orrery/internal/engine"
	"orrery/internal/observe"
	"orrery/internal/problem"
	"orrery/internal/site/spec"
	"orrery/test/need"
)

// privileged returns a privileged node, whose owners are those of the host, so that the test needs
// no root.
func privileged(id int, base string) *spec.Node {
	return &spec.Node{Site: "s", Name: "a", ID: id, Engine: "lxc", MachineID: "0123", Base: base, Privileged: true}
}

func mayChown(t *testing.T) {
	t.Helper()
	need.SameIDs(t)
}

// wrote has a node write a file, and reads returns the content of that file.
func wrote(t *testing.T, n *Nodes, ref engine.Ref, text string) {
	t.Helper()
	must(t, os.WriteFile(filepath.Join(n.Private(ref), "written"), []byte(text), 0o600))
}

func reads(n *Nodes, ref engine.Ref) string {
	text, _ := os.ReadFile(filepath.Join(n.Private(ref), "written"))
	return string(text)
}

// beside returns what is in the directory of a site's nodes.
func beside(t *testing.T, n *Nodes) []string {
	t.Helper()
	entries, err := os.ReadDir(n.Dirs.Nodes("s"))
	must(t, err)
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

// TestLife: a node is made, marked, found and removed without leftovers.
func TestLife(t *testing.T) {
	mayChown(t)
	n, s := nodesIn(t.TempDir()), privileged(1, "one")
	s.Config.Health = "to be applied"
	ref := engine.RefOf(s)
	var p *problem.Problem
	if _, err := n.Record(ref); !errors.As(err, &p) || p.Kind != problem.Surprise {
		t.Errorf("the record of a node that is not there: %v", err)
	}
	must(t, n.Create(t.Context(), s))
	if err := n.Create(t.Context(), s); !errors.As(err, &p) || p.Kind != problem.Surprise {
		t.Errorf("made twice: %v", err)
	}
	r, err := n.Record(ref)
	if err != nil || r.Base != "one" || r.Config.Health != "" || r.Slot == 0 || r.Configured {
		t.Errorf("the record of a new node is %+v: %v", r, err)
	}
	info, err := os.Stat(n.Dir(ref).Path())
	if err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("others may enter: %v, %v", info.Mode(), err)
	}
	at := time.Now().UTC().Truncate(time.Second)
	must(t, n.SetProgress(t.Context(), ref, engine.Progress{Configured: true, Config: s.Config, Proven: "x", ProvenAt: at,
		Active: true}))
	if r, err := n.Record(ref); err != nil || !r.Configured || r.Config.Health != "to be applied" || r.Proven != "x" ||
		!r.ProvenAt.Equal(at) || !r.Active {
		t.Errorf("a node that was marked is %+v: %v", r, err)
	}
	must(t, os.WriteFile(n.Dir(engine.Ref{Site: "s", ID: 1}).File(recordFile), []byte("{"), 0o600))
	found, err := n.Found("")
	if err != nil || len(found) != 1 || found[0].Whole || found[0].ID != 1 || found[0].Site != "s" {
		t.Errorf("half a record: found %+v, %v", found, err)
	}
	must(t, os.MkdirAll(n.Dirs.Etc("s", 1), 0o755))
	must(t, n.Remove(ref))
	must(t, n.Remove(ref))
	if left := beside(t, n); len(left) > 0 || exists(n.Dirs.Etc("s", 1)) {
		t.Errorf("left of it: %v", left)
	}
	must(t, n.Sweep("s"))
	if entries, err := os.ReadDir(n.Slots); err != nil || len(entries) > 0 {
		t.Errorf("its user ids are taken: %v, %v", entries, err)
	}
}

// TestKept: a replaced node can be restored until the replacement is settled. A running node is
// neither replaced nor restored.
func TestKept(t *testing.T) {
	mayChown(t)
	n, old, next := nodesIn(t.TempDir()), privileged(2, "one"), privileged(2, "two")
	ref := engine.RefOf(old)
	must(t, n.Create(t.Context(), old))
	wrote(t, n, ref, "former")
	must(t, n.Replace(t.Context(), next))
	if r, err := n.Record(ref); err != nil || r.Base != "two" || reads(n, ref) != "" {
		t.Errorf("replaced by %+v with %q: %v", r, reads(n, ref), err)
	}
	must(t, n.Restore(t.Context(), ref))
	if r, err := n.Record(ref); err != nil || r.Base != "one" || reads(n, ref) != "former" {
		t.Errorf("restored: %+v with %q: %v", r, reads(n, ref), err)
	}
	if err := n.Restore(t.Context(), ref); err == nil {
		t.Error("restored twice")
	}
	must(t, n.Replace(t.Context(), next))
	if got := beside(t, n); !slices.Equal(got, []string{".2-former", "2"}) {
		t.Errorf("before it is settled: %v", got)
	}
	must(t, n.Settle(t.Context(), ref))
	if got := beside(t, n); !slices.Equal(got, []string{"2"}) {
		t.Errorf("after it was settled: %v", got)
	}
	n.Running = func(engine.Ref) bool { return true }
	for what, err := range map[string]error{
		"replaced": n.Replace(t.Context(), old), "restored": n.Restore(t.Context(), ref),
		"injected": n.Inject(t.Context(), ref),
		"reshaped": n.Change(&spec.Node{Site: "s", Name: "a", ID: 2, MachineID: "other"}, nil),
	} {
		var p *problem.Problem
		if !errors.As(err, &p) || p.Kind != problem.Surprise {
			t.Errorf("a running node is %s: %v", what, err)
		}
	}
}

// TestFill: Fill replaces the private layer with which a node was made. As long as the node may
// lack a layer, the new one is still at its old path.
func TestFill(t *testing.T) {
	mayChown(t)
	n, s := nodesIn(t.TempDir()), privileged(3, "one")
	ref := engine.RefOf(s)
	must(t, n.Create(t.Context(), s))
	laid := filepath.Join(n.Dirs.Site("s"), "laid")
	for _, text := range []string{"first", "second"} {
		must(t, os.MkdirAll(laid, 0o755))
		must(t, os.WriteFile(filepath.Join(laid, "written"), []byte(text), 0o600))
		must(t, n.Fill(ref, laid))
		if reads(n, ref) != text || exists(laid) {
			t.Errorf("filled with %q", reads(n, ref))
		}
	}
	if err := n.Fill(ref, laid); !errors.Is(err, fs.ErrNotExist) || reads(n, ref) != "second" {
		t.Errorf("filled with nothing: %v, %q", err, reads(n, ref))
	}
	if entries, err := os.ReadDir(filepath.Dir(n.Private(ref))); err != nil || len(entries) != 2 {
		t.Errorf("beside it: %v, %v", entries, err)
	}
}

// TestSweep: Sweep removes what killed runs left beside nodes, frees user ids of nodes that were
// never made, and closes directories that an earlier version left open. Nodes stay.
func TestSweep(t *testing.T) {
	mayChown(t)
	n, s := nodesIn(t.TempDir()), privileged(4, "one")
	must(t, n.Create(t.Context(), s))
	must(t, os.Chmod(n.Dir(engine.RefOf(s)).Path(), 0o755))
	if _, err := slotsOf(n).allocate("s", 5); err != nil {
		t.Fatal(err)
	}
	for _, left := range []string{".5-new", ".4-former", ".6-gone"} {
		must(t, os.MkdirAll(filepath.Join(n.Dirs.Nodes("s"), left, "private/upper/deep"), 0o755))
	}
	must(t, n.Sweep("s"))
	if got := beside(t, n); !slices.Equal(got, []string{"4"}) {
		t.Errorf("after the sweep: %v", got)
	}
	info, err := os.Stat(n.Dir(engine.RefOf(s)).Path())
	if err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("still open: %v, %v", info.Mode(), err)
	}
	if entries, err := os.ReadDir(n.Slots); err != nil || len(entries) != 1 {
		t.Errorf("ids: %v, %v", entries, err)
	}
	must(t, n.Sweep("never was"))
}

// TestChangeInterfaces: interfaces of a running node change if its engine can do that, and the
// engine's error is returned. A successful change clears Doubt.
func TestChangeInterfaces(t *testing.T) {
	mayChown(t)
	n, s := nodesIn(t.TempDir()), privileged(6, "one")
	ref := engine.RefOf(s)
	must(t, n.Create(t.Context(), s))
	n.Running = func(engine.Ref) bool { return true }
	changed := *s
	changed.NICs = []spec.NIC{{Name: "eth0", Network: "lan", MAC: "02:00:00:00:00:01"}}
	fails := func() error { return errors.New("the guest does not take it") }
	if err := n.Change(&changed, fails); problem.ExitCode(err) != int(problem.Surprise) {
		t.Error(err)
	}
	n.PlugsNIC = true
	if err := n.Change(&changed, fails); err == nil || !strings.Contains(err.Error(), "does not take it") {
		t.Error(err)
	}
	if r, err := n.Record(ref); err != nil || len(r.NICs) != 0 {
		t.Errorf("%+v, %v", r, err)
	}
	r, err := n.Record(ref)
	must(t, err)
	r.Doubt = []string{"lan"}
	must(t, n.Dir(ref).Write(r))
	listed, err := n.Observe("s", func(o *observe.Node) { o.State = observe.Running })
	if err != nil || len(listed) != 1 || !slices.Equal(listed[0].Doubt, r.Doubt) {
		t.Errorf("%+v, %v", listed, err)
	}
	must(t, n.Change(&changed, func() error { return nil }))
	if r, err := n.Record(ref); err != nil || len(r.NICs) != 1 || len(r.Doubt) != 0 {
		t.Errorf("%+v, %v", r, err)
	}
}
