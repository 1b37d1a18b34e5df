package snapshot

import (
	"errors"
	"strings"
	"testing"

	"orrery/internal/engine"
	"orrery/internal/engine/fake"
	"orrery/internal/engine/nodedir"
	"orrery/internal/host"
	"orrery/internal/site/spec"
	"orrery/test/need"
)

// TestNodeOnDisk: the data of a running node is restored, on its layers of the snapshot. If the
// restore fails, the node keeps its current data.
func TestNodeOnDisk(t *testing.T) {
	need.SameIDs(t)
	dirs := host.Dirs{State: t.TempDir(), Run: t.TempDir()}
	d := fake.OnDisk(dirs)
	n := &spec.Node{Site: "karoo", Name: "n1", ID: 1, Engine: "fake", MachineID: "0123", Base: "then"}
	ref := engine.RefOf(n)
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	write := func(text string) {
		t.Helper()
		must(d.Start(t.Context(), ref))
		must(d.Runner(ref).Put(t.Context(), host.File{Path: "/etc/x", Content: []byte(text), Mode: 0o600}))
	}
	read := func() string {
		t.Helper()
		var out strings.Builder
		must(d.Start(t.Context(), ref))
		must(d.Runner(ref).Run(t.Context(), host.Command{Args: []string{"cat", "/etc/x"}, Stdout: &out}))
		must(d.Stop(t.Context(), ref))
		return out.String()
	}
	must(d.Create(t.Context(), n))
	write("then")
	engines := map[string]engine.Engine{"fake": d}
	record, err := nodedir.Of(dirs, "karoo", 1).Read()
	must(err)
	o := Options{Dirs: dirs, Key: "karoo", Engines: engines, Nodes: []*nodedir.Record{record}, Who: "ada"}
	s, err := Take(t.Context(), o)
	must(err)
	must(d.Stop(t.Context(), ref))
	now := *n
	now.Base = "now"
	must(d.Replace(t.Context(), &now))
	must(d.Settle(t.Context(), ref))
	write("now")
	must(d.Stop(t.Context(), ref))

	d.Fail("SetProgress", "n1", 1, nil)
	if _, err := s.Restore(t.Context(), dirs, engines, nil); !errors.Is(err, fake.ErrInjected) {
		t.Errorf("put back in spite of %v", err)
	}
	if r, err := nodedir.Of(dirs, "karoo", 1).Read(); err != nil || r.Base != "now" || read() != "now" {
		t.Errorf("after a failure it stands on %s and has %q: %v", r.Base, read(), err)
	}
	back, err := s.Restore(t.Context(), dirs, engines, nil)
	must(err)
	must(back.DiscardFormer(t.Context()))
	if r, err := nodedir.Of(dirs, "karoo", 1).Read(); err != nil || r.Base != "then" || read() != "then" {
		t.Errorf("put back, it stands on %s and has %q: %v", r.Base, read(), err)
	}
}
