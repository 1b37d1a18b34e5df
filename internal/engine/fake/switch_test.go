package fake_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"orrery/internal/engine"
	"orrery/internal/engine/fake"
	"orrery/internal/network"
	"orrery/internal/observe"
	"orrery/internal/site"
	"orrery/internal/site/spec"
)

const key = "suite"

// pair is a host with a live node and one of the same name in quarantine, each with a volume or a
// copy of it.
type pair struct {
	*testing.T
	*fake.Host
	live, staged      *spec.Node
	alive, apart, old string // the bridges of live nodes, of the quarantine, and of what is no longer live
	took              spec.Node
}

func newPair(t *testing.T) *pair {
	p := &pair{T: t, Host: fake.NewHost(key, "sv", 4, 1<<30)}
	p.live, p.staged = nodeOf("db", 101), nodeOf("db", 701101)
	p.alive, p.apart = site.BridgeName(key, "cam"), site.BridgeName(site.Quarantine(key, 701), "cam")
	p.old = site.BridgeName(site.Quarantine(key, 0), "cam")
	p.staged.Release, p.staged.Staged = 701, true
	p.staged.NICs[0].Bridge, p.staged.NICs[0].HostIfName = p.apart, "orvstaged"
	volume := spec.Mount{Volume: "rows", Path: "/srv", Exclusive: true}
	copied := volume
	copied.Copy, copied.Release = site.CopySnapshot, 701
	p.live.Mounts, p.staged.Mounts = []spec.Mount{volume}, []spec.Mount{copied}
	p.Populate([]spec.Network{
		{Site: key, Name: "cam", Bridge: p.alive, Subnet: "10.9.0.0/24"},
		{Site: site.Quarantine(key, 701), Name: "cam", Bridge: p.apart, Subnet: "10.9.0.0/24"},
		{Site: site.Quarantine(key, 0), Name: "cam", Bridge: p.old, Subnet: "10.9.0.0/24"},
	}, map[string]bool{"base": true, "layer": true}, p.live, p.staged)
	p.took = *p.staged
	p.took.Mounts = []spec.Mount{volume}
	return p
}

func (p *pair) move(live, staged string) error {
	return p.Networks().MoveLinks(p.Context(), []network.Move{
		{Link: p.live.NICs[0].HostIfName, Bridge: live}, {Link: p.staged.NICs[0].HostIfName, Bridge: staged},
	})
}

func (p *pair) bridges() []string {
	p.Helper()
	nodes, err := p.List(p.Context(), key)
	if err != nil {
		p.Fatal(err)
	}
	slices.SortFunc(nodes, func(a, b observe.Node) int { return a.ID - b.ID })
	return []string{nodes[0].NICs[0].Bridge, nodes[1].NICs[0].Bridge}
}

func TestSwitchIsRefused(t *testing.T) {
	p := newPair(t)
	refuse := func(err error, why string) {
		t.Helper()
		if err == nil || !strings.Contains(err.Error(), why) {
			t.Errorf("%v, want %q", err, why)
		}
	}
	ctx, ref := t.Context(), engine.RefOf(p.staged)
	refuse(p.Remount(ctx, &p.took), "have volume rows at the same time")
	refuse(p.SetProgress(ctx, ref, engine.Progress{Configured: true, Active: true}), "not all of its links are live")
	refuse(p.move(p.alive, p.alive), "live twice")
	refuse(p.move(p.old, "nowhere"), "there is no bridge")
	if got := p.bridges(); !slices.Equal(got, []string{p.alive, p.apart}) {
		t.Errorf("what was refused was done: %v", got)
	}
	if err := p.Stop(ctx, engine.RefOf(p.live)); err != nil {
		t.Fatal(err)
	}
	refuse(p.move(p.old, p.alive), "there is no link")
	alone := []network.Move{{Link: p.staged.NICs[0].HostIfName, Bridge: p.alive}}
	if err := p.Networks().MoveLinks(ctx, alone); err != nil {
		t.Fatal(err)
	}
	refuse(p.Start(ctx, engine.RefOf(p.live)), "live twice")
	refuse(p.Volumes().DropCopies(key, 701), "belongs to it")
}

// TestMoveIsWhole: an interrupted move has moved all links or none.
func TestMoveIsWhole(t *testing.T) {
	p := newPair(t)
	seen := map[string]bool{}
	for range 4 {
		p.Crash("move", "", 1)
		if err := p.move(p.old, p.alive); !errors.Is(err, fake.ErrCrashed) {
			t.Fatal(err)
		}
		got := strings.Join(p.bridges(), " ")
		if got != p.alive+" "+p.apart && got != p.old+" "+p.alive {
			t.Errorf("links moved in part: %s", got)
		}
		seen[got] = true
		if err := p.move(p.alive, p.apart); err != nil { // and back
			t.Fatal(err)
		}
	}
	if len(seen) != 2 {
		t.Errorf("what was seen: %v", seen)
	}
}
