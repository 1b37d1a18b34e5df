package plan

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"orrery/internal/observe"
	"orrery/internal/plan/overlay"
	"orrery/internal/problem"
	"orrery/internal/site"
	"orrery/internal/site/spec"
)

// TestBuild: only layers are planned, of selected nodes and on known hosts.
func TestBuild(t *testing.T) {
	s, hosts := spanning()
	s.Images = append(s.Images, site.Image{Name: "other", Suite: "trixie"})
	s.Nodes[1].Image = "other"
	for what, c := range map[string]struct {
		goal   Goal
		change func()
		want   string
	}{
		"all":  {want: "build debian on sv1, build other on sv2, fetch debian on sv3"},
		"some": {goal: Goal{Nodes: map[string]bool{"b": true}}, want: "build other on sv2"},
		"one is built": {change: func() {
			hosts[1].Layers = map[string]bool{spec.NewBuilder(s).Layers(&s.Nodes[1])[0].Digest: true}
		}, want: "build debian on sv1, fetch debian on sv3"},
		// Its needs are unknown.
		"one is unknown": {change: func() { hosts[1] = observe.Host{Name: "sv2", Unknown: true} },
			want: "build debian on sv1, build debian on sv3"},
	} {
		before := slices.Clone(hosts)
		if c.change != nil {
			c.change()
		}
		p, err := Build(s, hosts, c.goal)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, step := range p.Steps {
			got = append(got, fmt.Sprintf("%s %s on %s", step.Kind, step.Subject, step.Host))
		}
		slices.Sort(got)
		if joined := strings.Join(got, ", "); joined != c.want {
			t.Errorf("%s: %s, not %s", what, joined, c.want)
		}
		hosts = before
	}
	if _, err := Build(s, []observe.Host{{Name: "sv1", Releases: observe.Releases{Active: map[string]int{"a": 7}}}},
		Goal{}); err == nil {
		t.Error("what a release that nobody knows makes is built")
	}
}

// TestMoveBack: after a move that failed before a node was given away, the node runs again on its
// old host.
func TestMoveBack(t *testing.T) {
	s, f := movable()
	p, err := MoveNodes(s, f.seen(), Goal{}, map[string]string{"a": "sv3", "b": "sv3"})
	if err != nil {
		t.Fatal(err)
	}
	given := func(ready []int) int { // the steps of node a up to its stop, and all steps of node b
		for i, n := range ready {
			if step := p.Steps[n]; step.Subject != "a" || step.Kind == CopyNode || step.Kind == StopNode {
				return i
			}
		}
		return -1
	}
	if err := f.run(p, given); err != nil {
		t.Fatal(err)
	}
	back, err := MoveBack(s, f.seen(), Goal{}, p)
	if err == nil {
		err = f.run(back, func([]int) int { return 0 })
	}
	if err != nil {
		t.Fatalf("%v\n%s", err, told(back))
	}
	for name, want := range map[string]string{"a": "sv1", "b": "sv3"} {
		if n, on := f.live(name); on != want || n.State != observe.Running {
			t.Errorf("node %s is on host %q: %+v", name, on, n)
		}
	}
}

// TestMoveNowhere: a move to a host that accepts no nodes, of a node that does not exist, or of a
// node that differs from its declaration is refused.
func TestMoveNowhere(t *testing.T) {
	for want, c := range map[string]struct {
		change func(s *site.Site, f *paper)
		node   string
		kind   problem.Kind
	}{
		`no node is called "nobody"`: {func(*site.Site, *paper) {}, "nobody", problem.Usage},
		"which is drained": {func(_ *site.Site, f *paper) { f.hosts[2].Drained = &observe.Drain{} }, "a",
			problem.Unable},
		"it has the id 99": {func(_ *site.Site, f *paper) { f.hosts[0].Nodes[0].ID = 99 }, "a",
			problem.Unable},
		"it has the engine other": {func(_ *site.Site, f *paper) { f.hosts[0].Nodes[0].Engine = "other" }, "a",
			problem.Unable},
		"disk data cannot shrink from 2GiB": {func(s *site.Site, f *paper) { disks(s, f, 2<<30, 1<<30) }, "a",
			problem.Mistake},
		"network lan of host sv3 differs": {func(_ *site.Site, f *paper) { f.hosts[2].Networks[0].Kind = site.Macvlan },
			"a", problem.Mistake},
		"its site directory as staged is missing": {func(_ *site.Site, f *paper) {
			f.hosts[0].Releases.Active = map[string]int{"a": 7}
		}, "a", problem.Failed},
		"recreated: role layer changed": {func(_ *site.Site, f *paper) { f.hosts[0].Nodes[0].Layer = "other" }, "a",
			problem.Unable},
	} {
		s, f := movable()
		c.change(s, f)
		if p, err := MoveNodes(s, f.seen(), Goal{}, map[string]string{c.node: "sv3"}); !problem.Is(err, c.kind) ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v\n%v", want, err, p)
		}
	}
}

// disks adds a disk to the first node, whose declared size differs from the existing one.
func disks(s *site.Site, f *paper, current, declared int64) {
	of := func(size int64) []site.Drive { return []site.Drive{{Name: "data", Disk: site.RawFile, Size: size}} }
	s.Nodes[0].VM.Disks, f.hosts[0].Nodes[0].VM.Disks = of(declared), of(current)
}

// TestMoveFrames: nodes that stay on a network whose MTU changes because it now spans hosts are
// named.
func TestMoveFrames(t *testing.T) {
	s, f := movable()
	for i := range s.Networks {
		s.Networks[i].MTU = 0
	}
	s.Networks = append(s.Networks, site.Network{Name: "own", Subnet: netip.MustParsePrefix("10.0.9.0/24")})
	for i, name := range []string{"x", "y"} {
		s.Nodes = append(s.Nodes, site.Node{Name: name, ID: 21 + i, Image: "debian", Engine: "fake", Autostart: true,
			NICs: []site.NIC{{Network: "own", Address: netip.AddrFrom4([4]byte{10, 0, 9, byte(21 + i)})}}})
	}
	for range 2 {
		for i := 3; i < len(s.Nodes); i++ {
			s.Nodes[i].Host = "sv1"
		}
		p, err := Up(s, f.seen(), Goal{})
		if err == nil {
			err = f.run(p, func([]int) int { return 0 })
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	for i := range s.Nodes {
		s.Nodes[i].Host = ""
	}
	p, err := MoveNodes(s, f.seen(), Goal{}, map[string]string{"x": "sv2"})
	if err != nil || len(p.Warnings) != 1 || !strings.HasSuffix(p.Warnings[0], "restarts these nodes: y") {
		t.Errorf("%q, %v", p.Warnings, err)
	}
	if p, err = MoveNodes(s, f.seen(), Goal{}, map[string]string{"x": "sv2", "y": "sv2"}); err != nil ||
		len(p.Warnings) != 0 {
		t.Errorf("if none stays: %q, %v", p.Warnings, err)
	}
}

// TestCompanyRefused: an instance of another release that cannot move prevents the move of its
// node. The cure depends on the instance: a release on trial, an interrupted switch, or a release
// that rollback returns to.
func TestCompanyRefused(t *testing.T) {
	for what, c := range map[string]struct {
		change func(h *observe.Host, beside *observe.Node)
		says   string
		cure   string
	}{
		"a trial": {func(h *observe.Host, _ *observe.Node) { h.Releases.Trial = &observe.Trial{Release: 7} },
			"release 7 is on trial", "orrery confirm or orrery rollback first"},
		"a switch": {func(h *observe.Host, _ *observe.Node) { h.Releases.Switch = &observe.Switch{} },
			"a switch was interrupted", "orrery up finishes it"},
		"incomplete": {func(_ *observe.Host, n *observe.Node) { n.State = observe.Broken }, "it is incomplete",
			"orrery release prune --keep 0 first"},
		"incomplete, and rollback's": {func(h *observe.Host, n *observe.Node) {
			n.State = observe.Broken
			h.Releases.Former = map[string]int{"a": 7}
		}, "it is incomplete", "orrery stage --release 7 a --give-up-rollback first"},
		"incomplete, another is": {func(h *observe.Host, n *observe.Node) {
			n.State = observe.Broken
			h.Releases.Former = map[string]int{"a": 8}
		}, "it is incomplete", "orrery release prune --keep 0 first"},
		"made of something else": {func(_ *observe.Host, n *observe.Node) { n.Base = "other" }, "base image changed",
			"orrery release prune"},
		"an engine that moves nothing": {func(h *observe.Host, _ *observe.Node) {
			h.Engines = map[string]observe.Capabilities{"fake": {}}
		}, "the engine fake cannot move nodes", ""},
	} {
		s, f := movable()
		goal := Goal{Releases: map[int]*site.Site{0: s, 7: f.beside(s, "a", 7)}}
		h := f.host("sv1")
		i := slices.IndexFunc(h.Nodes, func(n observe.Node) bool { return n.Staged })
		c.change(h, &h.Nodes[i])
		_, err := MoveNodes(s, f.seen(), goal, map[string]string{"a": "sv3"})
		if !problem.Is(err, problem.Unable) || !strings.Contains(err.Error(), c.says) ||
			!strings.Contains(err.Error(), c.cure) {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// TestSpanUnheard: if the MTUs of hosts are unknown, a network across them gets the usual MTU, or
// keeps its former one.
func TestSpanUnheard(t *testing.T) {
	for what, c := range map[string]struct{ was, want int }{
		"it was nowhere":       {0, 1450},
		"it took less":         {1300, 1300},
		"it took more":         {1500, 1450},
		"it took what is none": {100, 1450},
	} {
		s, hosts := spanning()
		homes := map[string]string{"a": "sv1", "b": "sv2", "c": "sv3"}
		for i := range hosts {
			s.Hosts[i].Underlay = netip.AddrFrom4([4]byte{10, 8, 1, byte(i + 1)})
			hosts[i] = observe.Host{Name: hosts[i].Name, Unknown: true}
			if c.was > 0 {
				hosts[i].Networks = []observe.Network{{Network: spec.Network{Site: "toykat", Name: "lan", MTU: c.was,
					VXLAN: spec.VXLAN{ID: 1}}}}
			}
		}
		joints, _, err := overlay.Join(s, s.Key(), hosts, homes)
		if err != nil || joints.MTUs()["lan"] != c.want || joints.MTUs()["data"] != 1450 {
			t.Errorf("%s: %v, not %d (%v)", what, joints.MTUs(), c.want, err)
		}
	}
}

// TestSpanHalfHeard: if the MTU of one host is unknown, a network gets at most the usual MTU,
// however large those of the others are.
func TestSpanHalfHeard(t *testing.T) {
	s, hosts := spanning()
	for i := range hosts {
		hosts[i].Addresses[1].MTU = 9000
	}
	hosts[2] = observe.Host{Name: "sv3", Unknown: true}
	joints, _, err := overlay.Join(s, s.Key(), hosts, map[string]string{"a": "sv1", "b": "sv2", "c": "sv3"})
	if mtus := joints.MTUs(); err != nil || mtus["lan"] != 1450 || mtus["data"] != 1500 {
		t.Errorf("they take %v (%v)", mtus, err)
	}
}

// TestWays: each pair of hosts with common networks has one path, for the largest packets.
func TestWays(t *testing.T) {
	s, hosts := spanning()
	s.Networks[1].MTU = 1400
	s.Networks[0].MTU = 1300
	joints, err := overlay.JoinLive(s, hosts)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, w := range joints.Paths() {
		got = append(got, fmt.Sprintf("%s %s-%s %d", w.Network, w.From, w.To, w.Size))
	}
	if text := strings.Join(got, ", "); text != "data sv1-sv2 1450, lan sv1-sv3 1350, lan sv2-sv3 1350" {
		t.Errorf("the ways are %s", text)
	}
}

// TestStuckNode: a node with an unknown owner is not changed, and is not made a second time.
func TestStuckNode(t *testing.T) {
	for what, c := range map[string]struct {
		change func(f *paper)
		says   string
	}{
		"given to a host that is silent": {func(f *paper) {
			f.hosts[0].OutgoingMoves = []observe.OutgoingMove{{Node: f.hosts[0].Nodes[0], To: "sv3", Sum: "s"}}
			f.hosts[2] = observe.Host{Name: "sv3", Unknown: true}
		}, "host sv1 handed it over to host sv3, whose state is unknown"},
		"all of it has come, and nobody has given it": {func(f *paper) {
			n := f.hosts[0].Nodes[0]
			f.hosts[2].IncomingMoves = []observe.IncomingMove{{Name: "a", ID: n.ID, From: "sv1", Sum: "s", Whole: true}}
		}, "all of it was received from host sv1, which has no record of handing it over"},
	} {
		s, f := movable()
		c.change(f)
		f.hosts[0].Nodes = nil
		p, err := Up(s, f.seen(), Goal{})
		if err != nil {
			t.Fatal(err)
		}
		for _, step := range p.Steps {
			if step.Subject == "a" {
				t.Errorf("%s: %s: %s", what, step.Host, step)
			}
		}
		if text := strings.Join(p.Warnings, "\n"); !strings.Contains(text, "node a is not changed: "+c.says) {
			t.Errorf("%s: the warnings are %s", what, text)
		}
	}
}
