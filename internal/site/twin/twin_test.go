package twin_test

import (
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"orrery/internal/site"
	"orrery/internal/site/check"
	"orrery/internal/site/device"
	"orrery/internal/site/event"
	"orrery/internal/site/selector"
	"orrery/internal/site/spec"
	"orrery/internal/site/twin"

	"pgregory.net/rapid"
)

func draw(t *rapid.T, s *site.Site) twin.Options {
	o := twin.Options{
		Name: "dev1", Owner: "jane", NAT: rapid.Bool().Draw(t, "nat"), Collapse: rapid.Bool().Draw(t, "collapse"),
		Release: rapid.SampledFrom([]int{0, 700, 701, 702}).Draw(t, "release"),
		Cpus: rapid.SampledFrom([]float64{0, 0.01, 0.5, 1, 2}).
			Draw(t, "cpus"), Memory: rapid.SampledFrom([]float64{0, 0.001, 0.3, 1}).Draw(t, "memory"),
	}
	if rapid.Bool().Draw(t, "only some") {
		for _, n := range s.Nodes {
			if len(o.Only) == 0 || rapid.Bool().Draw(t, "chosen") {
				o.Only = append(o.Only, n.Name)
			}
		}
	}
	return o
}

func of(t *rapid.T, s *site.Site, o twin.Options) *site.Site {
	made, err := twin.New(s, o)
	if err != nil {
		t.Fatalf("%+v: %v", o, err)
	}
	return made
}

func spell(t *rapid.T, m *spec.Builder, n *site.Node) *spec.Node {
	spelt, err := m.Node(n)
	if err != nil {
		t.Fatal(err)
	}
	return spelt
}

// TestSameToItself: what a node sees of itself and the others is the same as in the original, but
// the host's names differ.
func TestSameToItself(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := sites().Draw(t, "site")
		o := draw(t, s)
		first := of(t, s, o)
		o.Name = "dev2"
		second := of(t, s, o)
		makers := []*spec.Builder{spec.NewBuilder(s), spec.NewBuilder(first), spec.NewBuilder(second)}
		names := map[string]bool{}
		for _, m := range makers {
			for _, n := range m.Networks() {
				if names[n.Bridge] {
					t.Fatalf("bridge %s is there twice", n.Bridge)
				}
				names[n.Bridge] = true
			}
		}
		for i := range first.Nodes {
			n := &first.Nodes[i]
			source, ok := s.Node(n.Name)
			if !ok || source.ID != n.ID {
				t.Fatalf("%s is not a node of the original", n.Name)
			}
			original, mine, other := spell(t, makers[0], source), spell(t, makers[1], n), spell(t, makers[2], &second.Nodes[i])
			if mine.MachineID != original.MachineID || mine.Site == original.Site || mine.Site == other.Site {
				t.Fatalf("%+v", mine)
			}
			for k, nic := range mine.NICs {
				if names[nic.HostIfName] || nic.HostIfName == other.NICs[k].HostIfName {
					t.Fatalf("link %s is there twice", nic.HostIfName)
				}
				names[nic.HostIfName] = true
				if k >= len(original.NICs) {
					continue // from another node, in a collapsed twin
				}
				if o := original.NICs[k]; nic.HostIfName == o.HostIfName || nic.MAC != o.MAC || nic.Address != o.Address ||
					nic.Name != o.Name {
					t.Fatalf("%+v, in the original %+v", nic, o)
				}
			}
		}
	})
}

// TestLeavesOriginal: deriving a twin or a release does not change the original, and repeating it
// has the same result.
func TestLeavesOriginal(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := sites().Draw(t, "site")
		before := clone(s)
		o := draw(t, s)
		first := of(t, s, o)
		if !reflect.DeepEqual(s, before) {
			t.Fatal("the original is another")
		}
		if second := of(t, s, o); !reflect.DeepEqual(first, second) {
			t.Fatal("the same again is not the same")
		}
	})
}

// TestReleaseOfTwin: the twin of a release equals the release of a twin.
func TestReleaseOfTwin(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := sites().Draw(t, "site")
		o := draw(t, s)
		number := o.Release
		of1 := of(t, s, o)
		o.Release = 0
		of2, err := twin.Release(of(t, s, o), number)
		if err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(of1, of2) {
			t.Fatalf("twin of release %d: %+v\nrelease of twin: %+v", number, of1, of2)
		}
		again, err := twin.Release(of2, number)
		if err != nil || !reflect.DeepEqual(again, of2) {
			t.Fatal("not the same when made again", err)
		}
	})
}

// TestPassesCheck: a twin of a site without mistakes has no mistakes.
func TestPassesCheck(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := sites().Draw(t, "site")
		for _, m := range check.Check(s) {
			t.Fatalf("original: %+v", m)
		}
		o := draw(t, s)
		made := of(t, s, o)
		for _, m := range check.Check(made) {
			t.Fatalf("%+v: %+v", o, m)
		}
	})
}

// TestIsolated: a twin has no way out unless requested, and uses no data of the original.
func TestIsolated(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := sites().Draw(t, "site")
		o := draw(t, s)
		made := of(t, s, o)
		if made.Production || made.Twin != o.Name || made.Name != s.Name || made.Owner != o.Owner {
			t.Fatalf("%+v", made)
		}
		for i, n := range made.Networks {
			if !n.Isolated || n.NAT != (o.NAT && n.Gateway.IsValid()) || n.Gateway != s.Networks[i].Gateway ||
				n.Subnet != s.Networks[i].Subnet {
				t.Fatalf("%+v", n)
			}
			if n.Kind != "" || n.Interface != "" || len(made.VethPairs) > 0 {
				t.Fatalf("it is no bridge: %+v %+v", n, made.VethPairs)
			}
		}
		for i, v := range made.Volumes {
			if v.Path+v.NFS+v.Mirror != "" || v.Every != 0 || v.Shared != s.Volumes[i].Shared {
				t.Fatalf("%+v", v)
			}
		}
		if len(made.Hosts) != len(s.Hosts) {
			t.Fatalf("its hosts are %+v", made.Hosts)
		}
		for _, n := range made.Nodes {
			original, _ := s.Node(n.Name)
			takes := func(nic site.NIC) bool { return nic.Interface != "" }
			if n.Host != original.Host || n.Limits.Pin != "" || n.SimulatedBy != "" || slices.ContainsFunc(n.NICs, takes) {
				t.Fatalf("%+v", n)
			}
		}
	})
}

// TestFound: a name or role that finds a node of the original also finds it, or its substitute, in
// the twin, even if the node is simulated.
func TestFound(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := sites().Draw(t, "site")
		o := draw(t, s)
		made := of(t, s, o)
		text := rapid.SampledFrom([]string{"role=receptor", "role=store", "role=db", "group=g0", s.Nodes[0].Name,
			"network=data", "id=2"}).Draw(t, "selector")
		originals, err := selector.Select(s, text)
		if err != nil {
			return
		}
		found, err := selector.Select(made, text)
		if err != nil {
			t.Fatal(err)
		}
		for _, n := range originals {
			if o.Only != nil && !slices.Contains(o.Only, n.Name) || o.Collapse && text == "id=2" {
				continue
			}
			if !slices.ContainsFunc(found, func(f *site.Node) bool {
				return f.Name == n.Name ||
					slices.Contains(f.Aliases, n.Name)
			}) {
				t.Fatalf("%s finds %s in the original and not in the twin", text, n.Name)
			}
		}
		for _, n := range found {
			if !o.Collapse && !slices.ContainsFunc(originals, func(o *site.Node) bool { return o.Name == n.Name }) {
				t.Fatalf("%s finds %s in the twin only", text, n.Name)
			}
		}
	})
}

// TestCollapse: the collapsed node has everything that the other nodes had.
func TestCollapse(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := sites().Draw(t, "site")
		made := of(t, s, twin.Options{Name: "toy", Collapse: true})
		if len(made.Nodes) != 1 {
			t.Fatalf("%d nodes", len(made.Nodes))
		}
		one := &made.Nodes[0]
		if one.Name != s.Nodes[0].Name || one.ID != s.Nodes[0].ID || len(one.Aliases) != len(s.Nodes)-1 {
			t.Fatalf("%+v", one)
		}
		var cpus float64
		limited := true
		for i := range s.Nodes {
			n := &s.Nodes[i]
			cpus += n.Limits.Cpus
			limited = limited && n.Limits.Cpus > 0
			for _, role := range n.Roles {
				if !slices.ContainsFunc(made.LookupRoles(one), func(r *site.Role) bool { return r.Name == role }) {
					t.Fatalf("it has no role %s", role)
				}
			}
			for _, nic := range n.NICs {
				if !slices.ContainsFunc(one.NICs, func(mine site.NIC) bool { return mine.Network == nic.Network }) {
					t.Fatalf("it is not on network %s", nic.Network)
				}
			}
		}
		if !limited {
			cpus = 0
		}
		if d := one.Limits.Cpus - cpus; d > 1e-9 || d < -1e-9 {
			t.Fatalf("%v processors, not %v", one.Limits.Cpus, cpus)
		}
	})
}

func TestScale(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := sites().Draw(t, "site")
		o := draw(t, s)
		o.Collapse, o.Only = false, nil
		made := of(t, s, o)
		for i, n := range made.Nodes {
			limits := s.Nodes[i].Limits
			if (n.Limits.Cpus == 0) != (limits.Cpus == 0) || (n.Limits.Memory == 0) != (limits.Memory == 0) ||
				n.Limits.Pids != limits.Pids {
				t.Fatalf("%+v, of %+v", n.Limits, limits)
			}
			if (o.Cpus == 0 || o.Cpus == 1) && n.Limits.Cpus != limits.Cpus || (o.Memory == 0 || o.Memory == 1) &&
				n.Limits.Memory != limits.Memory {
				t.Fatalf("%+v, of %+v", n.Limits, limits)
			}
			if n.Limits.Memory%(1<<20) != 0 || n.Limits.Memory != 0 && n.Limits.Memory < 32<<20 || n.Limits.Cpus != 0 &&
				n.Limits.Cpus < 0.05 {
				t.Fatalf("%+v, of %+v", n.Limits, limits)
			}
		}
	})
}

func TestMistakes(t *testing.T) {
	s := sites().Example(1)
	for want, o := range map[string]twin.Options{
		`twin name "" is not valid`:                   {},
		`twin name "701" is not valid (add a let`:     {Name: "701"},
		`twin name "Dev.1" is not valid`:              {Name: "Dev.1"},
		"at most 20 characters":                       {Name: strings.Repeat("x", 21)},
		`no node is called "nobody"`:                  {Name: "dev1", Only: []string{"nobody"}},
		"the twin would have no node":                 {Name: "dev1", Only: []string{}},
		"limits cannot be scaled by -1":               {Name: "dev1", Cpus: -1},
		"site karoo declares no release 703 (use 700": {Name: "dev1", Release: 703},
	} {
		_, err := twin.New(s, o)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v, not %q", o, err, want)
		}
	}
	made, err := twin.New(s, twin.Options{Name: "dev1"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := twin.New(made, twin.Options{Name: "dev2"}); err == nil {
		t.Error("there is a twin of a twin")
	}
}

func TestRequirementsOfCollapsed(t *testing.T) {
	s := sites().Filter(func(s *site.Site) bool { return len(s.Nodes) > 1 }).Example(1)
	s.Nodes[0].Requirements = site.Requirements{File: "other.txt", Text: "numpy==1.0\n"}
	if _, err := twin.New(s, twin.Options{Name: "toy", Collapse: true}); err == nil ||
		!strings.Contains(err.Error(), "other.txt") {
		t.Error(err)
	}
	if _, err := twin.New(s, twin.Options{Name: "toy", Collapse: true, Release: 701}); err != nil {
		t.Error(err)
	}
}

// TestNoHooks: events of a twin notify nobody, and nothing is done for it at intervals.
func TestNoHooks(t *testing.T) {
	s := &site.Site{Name: "karoo", Hosts: []site.Host{{Name: "local"}}, Nodes: []site.Node{{Name: "a", ID: 1}},
		Hooks:  []site.Hook{{Name: "page", On: event.All}},
		Backup: site.Backup{To: "/srv"}, Snapshot: site.Schedule{Keep: 1}, Watch: site.Watch{Every: time.Minute}}
	made, err := twin.New(s, twin.Options{Name: "dev"})
	if err != nil {
		t.Fatal(err)
	}
	if len(made.Hooks) > 0 || len(s.Hooks) != 1 {
		t.Errorf("the twin has %v, the site %v", made.Hooks, s.Hooks)
	}
	if made.Backup.To != "" || made.Snapshot.Keep != 0 || made.Watch.Every != 0 {
		t.Errorf("the twin has %v, %v, %v", made.Backup, made.Snapshot, made.Watch)
	}
}

// TestNoDevices: a twin has none of the original's devices, not even shared ones, also if it is collapsed.
//
// Promise (What nodes may do to the host): A twin has no devices of its original.
func TestNoDevices(t *testing.T) {
	s := &site.Site{Name: "karoo", Nodes: []site.Node{{Name: "web", ID: 1, Devices: []device.Device{{Path: "/dev/sdb"}}},
		{Name: "db", ID: 2, Devices: []device.Device{{Path: "/dev/fuse", Shared: true}}}}}
	for _, o := range []twin.Options{{Name: "dev"}, {Name: "dev", Collapse: true}} {
		made, err := twin.New(s, o)
		if err != nil {
			t.Fatal(err)
		}
		for _, n := range made.Nodes {
			if len(n.Devices) > 0 {
				t.Errorf("%+v: node %s has %v", o, n.Name, n.Devices)
			}
		}
	}
	if len(s.Nodes[0].Devices) != 1 {
		t.Error("the original has changed")
	}
}

// TestPublishNothing: the ports of the host lead to the original alone, also if a twin is collapsed
// or may reach the outside.
func TestPublishNothing(t *testing.T) {
	p, err := site.ParsePublish("8080:80")
	if err != nil {
		t.Fatal(err)
	}
	s := &site.Site{Name: "karoo", Nodes: []site.Node{{Name: "web", ID: 1, Publish: []site.Publish{p}},
		{Name: "db", ID: 2, Publish: []site.Publish{p}}}}
	for _, o := range []twin.Options{{Name: "dev"}, {Name: "dev", NAT: true}, {Name: "dev", Collapse: true}} {
		made, err := twin.New(s, o)
		if err != nil {
			t.Fatal(err)
		}
		for _, n := range made.Nodes {
			if len(n.Publish) > 0 {
				t.Errorf("%+v: node %s publishes %v", o, n.Name, n.Publish)
			}
		}
	}
	if len(s.Nodes[0].Publish) != 1 {
		t.Error("the original has changed")
	}
}
