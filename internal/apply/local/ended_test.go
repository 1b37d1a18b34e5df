package local_test

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"orrery/internal/apply/local/backends"
	"orrery/internal/engine"
	"orrery/internal/engine/fake"
	"orrery/internal/observe"
	"orrery/internal/plan"
	"orrery/internal/site/spec"
)

// leftNetworks returns a network of some site that is still on the host.
type leftNetworks struct{ backends.Networks }

func (leftNetworks) Observe(string) ([]observe.Network, error) {
	return make([]observe.Network, 1), nil
}

// TestHostAsBefore: a host gets its own settings back once no site has a node or network on it, and
// not before.
func TestHostAsBefore(t *testing.T) {
	w := newWorld(t)
	own := fmt.Sprint(w.below.Kernel().Settings(nil))
	p := w.reach(w.up())
	if i := slices.IndexFunc(p.Steps, func(s *plan.Step) bool { return s.Kind == plan.PrepareHost }); i < 0 {
		t.Fatal("the host is not prepared")
	}
	changed := fmt.Sprint(w.below.Kernel().Settings(nil))
	if changed == own {
		t.Fatal("the site needs no other settings than the host has")
	}
	restore := func(what, want string) {
		t.Helper()
		w.must(w.Do(t.Context(), &plan.Step{Kind: plan.RestoreHost, Host: "sv1"}, func(string) {}))
		if got := fmt.Sprint(w.below.Kernel().Settings(nil)); got != want {
			t.Errorf("%s, and the settings are %s", what, got)
		}
	}
	restore("there are nodes", changed)
	for _, s := range plan.Down(w.site, w.observed(), plan.Goal{Volumes: true}).Steps {
		if s.Kind != plan.RestoreHost {
			w.must(w.Do(t.Context(), s, func(string) {}))
		}
	}
	w.host.Engines["kvm"] = left{tried{fake.NewHost("karoo", "sv1", 8, 8<<30).Engine, new(int)}}
	restore("there is a node of another engine", changed)
	delete(w.host.Engines, "kvm")
	networks := w.host.Backends.Networks
	w.host.Backends.Networks = leftNetworks{networks}
	restore("there is a network", changed)
	w.host.Backends.Networks = networks
	restore("nothing is left", own)
}

// dropping is volumes that record which copies were dropped.
type dropping struct {
	backends.Volumes
	dropped []string
}

func (d *dropping) Drop(n *spec.Node, m spec.Mount) error {
	d.dropped = append(d.dropped, fmt.Sprint(n.Name, " ", m.Volume, " ", m.Release))
	return d.Volumes.Drop(n, m)
}

// remounting is an engine that can change the volumes of running nodes.
type remounting struct{ *fake.Engine }

var _ engine.Remounter = remounting{}

func (remounting) Remount(context.Context, *spec.Node) error { return nil }

// TestFormerCopies: a retired node keeps no copy of a volume that it once had alone. Shared volumes
// stay, and so does a copy that it still needs.
func TestFormerCopies(t *testing.T) {
	w := newWorld(t)
	w.settled(w.reach(w.up()))
	on := &dropping{Volumes: w.host.Backends.Volumes}
	w.host.Backends.Volumes, w.host.Engines["fake"] = on, remounting{w.below.Engine}
	n := *w.spelt("db")
	n.Mounts = []spec.Mount{
		{Volume: "rows", Path: "/srv", Copy: spec.NoCopy, Release: 700}, {Volume: "all", Path: "/all",
			Copy: spec.NoCopy, Shared: true},
		{Volume: "copied", Path: "/copied", Copy: "snapshot", Release: 700}, {Volume: "own", Path: "/own"},
	}
	w.must(w.Do(t.Context(), &plan.Step{Kind: plan.RetireNode, Host: "sv1", Subject: "db", Node: &n, Old: &n},
		func(string) {}))
	if !slices.Equal(on.dropped, []string{"db rows 700"}) {
		t.Errorf("dropped is %q", on.dropped)
	}
}
