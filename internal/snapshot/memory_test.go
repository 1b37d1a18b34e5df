package snapshot

import (
	"context"
	"errors"
	"os"
	"strings"
	"testing"

	"orrery/internal/engine"
	"orrery/internal/engine/fake"
	"orrery/internal/engine/nodedir"
	"orrery/internal/host"
	"orrery/internal/site/spec"
	"orrery/test/need"
)

// remembering is an engine that stores the memory of nodes, which is one word.
type remembering struct {
	*fake.Disk
	wrong    error
	recalled string // the file from which the node resumes
	still    bool   // the node was frozen when its memory was stored
}

func (r *remembering) SaveMemory(ctx context.Context, ref engine.Ref, file string) error {
	nodes, err := r.List(ctx, ref.Site)
	if err != nil {
		return err
	}
	r.still = nodes[0].State == "frozen"
	return errors.Join(r.wrong, os.WriteFile(file, []byte("thoughts"), 0o600))
}

func (r *remembering) ResumeFrom(_ engine.Ref, file string) error {
	r.recalled = file
	return nil
}

// TestMemory: the memory of nodes is stored while they are frozen, if requested. Restored nodes
// resume from it, unless the restore is undone.
func TestMemory(t *testing.T) {
	need.SameIDs(t)
	dirs := host.Dirs{State: t.TempDir(), Run: t.TempDir()}
	e := &remembering{Disk: fake.OnDisk(dirs)}
	n := &spec.Node{Site: "karoo", Name: "n1", ID: 1, Engine: "fake", MachineID: "0123", Base: "then"}
	ref := engine.RefOf(n)
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(e.Create(t.Context(), n))
	must(e.Start(t.Context(), ref))
	record, err := nodedir.Of(dirs, "karoo", 1).Read()
	must(err)
	engines := map[string]engine.Engine{"fake": e}
	o := Options{Dirs: dirs, Key: "karoo", Engines: engines, Nodes: []*nodedir.Record{record}}
	without, err := Take(t.Context(), o)
	must(err)
	if without.Nodes[0].Memory || e.still {
		t.Error("its memory was kept unasked")
	}
	o.Memory = true
	with, err := Take(t.Context(), o)
	must(err)
	if text, err := os.ReadFile(with.MemoryPath(1)); err != nil || string(text) != "thoughts" || !with.Nodes[0].Memory ||
		!e.still {
		t.Errorf("%q, %v, %+v, still: %t", text, err, with.Nodes[0], e.still)
	}
	e.wrong = errors.New("no room")
	if s, err := Take(t.Context(), o); !errors.Is(err, e.wrong) {
		t.Errorf("%+v, %v", s, err)
	}
	if nodes, err := e.List(t.Context(), "karoo"); err != nil || nodes[0].State != "running" {
		t.Errorf("after that it is %+v, %v", nodes, err)
	}

	must(e.Stop(t.Context(), ref))
	for s, want := range map[*Snapshot]string{without: "", with: with.MemoryPath(1)} {
		e.recalled = ""
		back, err := s.Restore(t.Context(), dirs, engines, nil)
		must(err)
		if e.recalled != want {
			t.Errorf("it goes on from %q, not %q", e.recalled, want)
		}
		must(back.Undo(t.Context()))
		if e.recalled != "" {
			t.Errorf("it goes on from %q, although that was taken back", e.recalled)
		}
	}

	o.Engines = map[string]engine.Engine{"fake": e.Disk}
	must(e.Start(t.Context(), ref))
	if s, err := Take(t.Context(), o); err != nil || s.Nodes[0].Memory || len(s.Left) != 1 ||
		!strings.Contains(s.Left[0], "n1: its memory") {
		t.Errorf("of an engine that cannot: %+v, %v", s, err)
	}
}
