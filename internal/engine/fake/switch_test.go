package fake_test

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"

	"orrery/internal/engine/fake"
	"orrery/internal/observe"
	"orrery/internal/plan"
	"orrery/internal/site"
	"orrery/internal/site/spec"
)

const key = "suite"

// pair is a host with a live node and one of the same name in quarantine, and both as they are after a switch.
type pair struct {
	*testing.T
	*fake.Host
	live, staged     *spec.Node
	retired, cleared spec.Node // the live one without its volume, then in quarantine
	took, switched   spec.Node // the staged one with the volume, then live
}

func newPair(t *testing.T) *pair {
	p := &pair{T: t, Host: fake.NewHost(key, "sv", 4, 1<<30)}
	p.live, p.staged = nodeOf("db", 101), nodeOf("db", 701101)
	lives, apart := site.BridgeName(key, "cam"), site.BridgeName(site.Quarantine(key, 701), "cam")
	old := site.BridgeName(site.Quarantine(key, 0), "cam")
	p.staged.Release, p.staged.Staged = 701, true
	p.staged.NICs[0].Bridge = apart
	volume := spec.Mount{Volume: "rows", Path: "/srv", Exclusive: true}
	copied, none := volume, volume
	copied.Copy, copied.Release = site.Snapshot, 701
	none.Copy = spec.NoCopy
	p.live.Mounts, p.staged.Mounts = []spec.Mount{volume}, []spec.Mount{copied}
	p.Present([]spec.Network{
		{Site: key, Name: "cam", Bridge: lives, Subnet: "10.9.0.0/24"},
		{Site: site.Quarantine(key, 701), Name: "cam", Bridge: apart, Subnet: "10.9.0.0/24"},
		{Site: site.Quarantine(key, 0), Name: "cam", Bridge: old, Subnet: "10.9.0.0/24"},
	}, "names", map[string]bool{"base": true, "layer": true}, p.live, p.staged)
	at := func(n spec.Node, bridge string, staged bool, m spec.Mount) spec.Node {
		n.NICs, n.Mounts, n.Staged = slices.Clone(n.NICs), []spec.Mount{m}, staged
		n.NICs[0].Bridge = bridge
		return n
	}
	p.retired, p.cleared = at(*p.live, lives, false, none), at(*p.live, old, true, none)
	p.took, p.switched = at(*p.staged, apart, true, volume), at(*p.staged, lives, false, volume)
	return p
}

func (p *pair) do(s plan.Step) error {
	s.Host = "sv"
	return p.Do(context.Background(), &s, func(string) {})
}

func (p *pair) must(s plan.Step) {
	p.Helper()
	if err := p.do(s); err != nil {
		p.Fatalf("%s: %v", s.Kind, err)
	}
}

func (p *pair) refuse(s plan.Step, why string) {
	p.Helper()
	if err := p.do(s); err == nil || !strings.Contains(err.Error(), why) {
		p.Fatalf("%s: %v, want %q", s.Kind, err, why)
	}
}

func (p *pair) node(id int) observe.Node {
	p.Helper()
	for _, n := range p.Observe().Nodes {
		if n.ID == id {
			return n
		}
	}
	p.Fatalf("node %d is not there", id)
	return observe.Node{}
}

func (p *pair) move() plan.Step {
	return plan.Step{Kind: plan.MoveLinks, Moves: []plan.Move{{Was: &p.retired, Is: &p.cleared}, {Was: &p.took, Is: &p.switched}}}
}

func TestSwitch(t *testing.T) {
	p := newPair(t)
	if !p.node(101).Active || p.node(701101).Active {
		t.Error("the live node is active, and not the other")
	}
	p.must(plan.Step{Kind: plan.RetireNode, Node: &p.retired})
	if n := p.node(101); n.Active || n.Mounts[0].Copy != spec.NoCopy {
		t.Errorf("after it was retired: %+v", n)
	}
	p.must(plan.Step{Kind: plan.TakeVolumes, Node: &p.took})
	p.must(p.move())
	if a, b := p.node(101), p.node(701101); !a.Staged || b.Staged || b.NICs[0].Bridge != p.switched.NICs[0].Bridge {
		t.Errorf("after the move: %+v, %+v", a, b)
	}
	p.must(plan.Step{Kind: plan.ActivateNode, Node: &p.switched, Was: &p.took})
	if !p.node(701101).Active {
		t.Error("it is not active")
	}
	is := observe.Releases{Active: map[string]int{"db": 701}}
	p.Keep(701)
	p.must(plan.Step{Kind: plan.CommitSwitch, Releases: &is})
	is.Active["db"] = 1 // the host has a copy
	if got := p.Observe().Releases; !maps.Equal(got.Active, map[string]int{"db": 701}) || !slices.Equal(got.Staged, []int{701}) {
		t.Errorf("releases: %+v", got)
	}
	p.refuse(plan.Step{Kind: plan.ForgetRelease, Release: 701}, "is of it")
	p.must(plan.Step{Kind: plan.DestroyNode, Was: &p.switched})
	p.must(plan.Step{Kind: plan.ForgetRelease, Release: 701})
	if got := p.Observe().Releases.Staged; len(got) != 0 {
		t.Errorf("still kept: %v", got)
	}
}

func TestSwitchIsRefused(t *testing.T) {
	p := newPair(t)
	p.refuse(plan.Step{Kind: plan.TakeVolumes, Node: &p.took}, "have volume rows at the same time")
	p.refuse(plan.Step{Kind: plan.ActivateNode, Node: p.staged}, "not all of its links are live")
	both := p.switched
	both.Mounts = p.staged.Mounts
	p.refuse(plan.Step{Kind: plan.MoveLinks, Moves: []plan.Move{{Is: &both}}}, "live twice")
	p.must(plan.Step{Kind: plan.StopNode, Was: p.live})
	p.refuse(plan.Step{Kind: plan.MoveLinks, Moves: []plan.Move{{Is: p.live}}}, "no links to move")
	p.must(plan.Step{Kind: plan.MoveLinks, Moves: []plan.Move{{Is: &both}}})
	p.refuse(plan.Step{Kind: plan.StartNode, Node: p.live}, "live twice")
}

// A MoveLinks that is cut short has moved all links or none, whatever is on record of it.
func TestMoveIsWhole(t *testing.T) {
	p := newPair(t)
	p.must(plan.Step{Kind: plan.RetireNode, Node: &p.retired})
	p.must(plan.Step{Kind: plan.TakeVolumes, Node: &p.took})
	records := map[[2]bool]bool{}
	for range 8 {
		p.Crash("move", "", 1)
		if err := p.do(p.move()); !errors.Is(err, fake.ErrCrashed) {
			t.Fatal(err)
		}
		a, b := p.node(101), p.node(701101)
		if (a.NICs[0].Bridge == p.cleared.NICs[0].Bridge) != (b.NICs[0].Bridge == p.switched.NICs[0].Bridge) {
			t.Errorf("links moved in part: %+v, %+v", a.NICs, b.NICs)
		}
		records[[2]bool{a.Staged, b.Staged}] = true
		p.must(plan.Step{Kind: plan.MoveLinks, Moves: []plan.Move{{Is: &p.took}, {Is: &p.retired}}}) // and back
	}
	if len(records) != 3 {
		t.Errorf("what was on record: %v", records)
	}
}
