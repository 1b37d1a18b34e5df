package place_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"orrery/internal/observe"
	"orrery/internal/plan/place"
	"orrery/internal/problem"
	"orrery/internal/site"
	"orrery/internal/site/spec"
)

const gib = 1 << 30

func machines(cpus ...int) []observe.Host {
	var all []observe.Host
	for i, n := range cpus {
		all = append(all, observe.Host{Name: fmt.Sprint("sv", i+1), Cpus: n, Memory: int64(n) * 4 * gib})
	}
	return all
}

func crowd(n int, limits site.Limits) *site.Site {
	s := &site.Site{Name: "rapid", Hosts: []site.Host{{Name: "sv1"}, {Name: "sv2"}}}
	for i := range n {
		s.Nodes = append(s.Nodes, site.Node{Name: fmt.Sprint("node", i), ID: 1 + i, Limits: limits})
	}
	return s
}

// homes returns the number of nodes on each host.
func homes(t *testing.T, s *site.Site, seen []observe.Host) map[string]int {
	t.Helper()
	placed, err := place.Assign(s, seen)
	if err != nil {
		t.Fatal(err)
	}
	count := map[string]int{}
	for _, n := range placed.Nodes {
		count[n.Host]++
	}
	return count
}

func TestPlaceSpreads(t *testing.T) {
	limits := site.Limits{Cpus: 1, Memory: gib}
	if got := homes(t, crowd(10, limits), machines(8, 8)); got["sv1"] != 5 || got["sv2"] != 5 {
		t.Errorf("on hosts of one size: %v", got)
	}
	if got := homes(t, crowd(9, limits), machines(4, 8)); got["sv1"] != 3 || got["sv2"] != 6 {
		t.Errorf("on hosts of which one is twice the other: %v", got)
	}
	if got := homes(t, crowd(10, site.Limits{}), machines(8, 8)); got["sv1"] != 5 || got["sv2"] != 5 {
		t.Errorf("nodes without limits: %v", got)
	}
}

// TestPlaceOnTwo: a host that reports a node of another gets no advantage from that. The declared
// host is used and, if there is none, Assign returns an error.
func TestPlaceOnTwo(t *testing.T) {
	s, seen := crowd(2, site.Limits{Cpus: 1, Memory: gib}), machines(8, 8)
	for i := range seen {
		seen[i].Nodes = []observe.Node{{Node: spec.Node{Name: "node0"}, State: observe.Running}}
	}
	if _, err := place.Assign(s, seen); !problem.Is(err, problem.Surprise) ||
		!strings.Contains(err.Error(), "node0 is on host sv1 and on host sv2") {
		t.Errorf("two hosts say that they have it: %v", err)
	}
	for _, home := range []string{"sv1", "sv2"} {
		s.Nodes[0].Host = home
		placed, err := place.Assign(s, seen)
		if err != nil || placed.Nodes[0].Host != home {
			t.Errorf("of a node that belongs to %s: %v", home, err)
		}
	}
}

func TestPlaceKeepsWhatIsThere(t *testing.T) {
	s := crowd(3, site.Limits{Cpus: 1})
	s.Nodes[2].Host = "sv1"
	seen := machines(2, 16)
	seen[0].Nodes = []observe.Node{{Node: spec.Node{Name: "node0", ID: 1}}}
	placed, err := place.Assign(s, seen)
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []string{"sv1", "sv2", "sv1"} {
		if got := placed.Nodes[i].Host; got != want {
			t.Errorf("node%d is on %s, not on %s", i, got, want)
		}
	}
	if s.Nodes[0].Host != "" {
		t.Error("the site itself was changed")
	}
}

func TestPlaceHeedsWhatIsDeclaredOfHosts(t *testing.T) {
	s := crowd(4, site.Limits{Cpus: 1})
	s.Hosts[0].Cpus = 1
	if got := homes(t, s, machines(64, 4)); got["sv1"] != 1 || got["sv2"] != 3 {
		t.Errorf("a host of which one processor is given: %v", got)
	}
}

func TestPlaceWithoutRoom(t *testing.T) {
	_, err := place.Assign(crowd(9, site.Limits{Memory: 8 * gib}), machines(8, 8))
	if problem.ExitCode(err) != int(problem.Mistake) || !strings.Contains(err.Error(), "node8") ||
		!strings.Contains(err.Error(), "8192 MiB") {
		t.Errorf("the ninth node of 8 GiB on two hosts of 32 GiB: %v", err)
	}
	over := crowd(2, site.Limits{Cpus: 6})
	over.Nodes[0].Host, over.Nodes[1].Host = "sv1", "sv1"
	if _, err := place.Assign(over, machines(8, 8)); err != nil {
		t.Errorf("who names the host may overcommit it: %v", err)
	}
}

func TestPlaceOnUnknownHost(t *testing.T) {
	s := crowd(1, site.Limits{})
	s.Nodes[0].Host = "sv9"
	if _, err := place.Assign(s, machines(8)); err == nil || !strings.Contains(err.Error(), `"sv9"`) {
		t.Errorf("a node on a host that nobody looked at: %v", err)
	}
}

// drawn is a random site on random hosts, with groups to be spread and some drained hosts.
func drawn(t *rapid.T) (*site.Site, []observe.Host) {
	var hosts []observe.Host
	s := &site.Site{Name: "rapid"}
	for i := range rapid.IntRange(1, 5).Draw(t, "hosts") {
		h := observe.Host{Name: fmt.Sprint("sv", i+1), Cpus: rapid.IntRange(1, 16).Draw(t, "cpus"),
			Memory: int64(rapid.IntRange(1, 32).Draw(t, "memory")) * gib}
		if i > 0 && rapid.IntRange(0, 4).Draw(t, "drained") == 0 {
			h.Drained = &observe.Drain{Who: "ada"}
		}
		hosts = append(hosts, h)
		s.Hosts = append(s.Hosts, site.Host{Name: h.Name,
			Oversubscribe: rapid.SampledFrom([]float64{0, 1, 1.5, 4}).Draw(t, "oversubscribe")})
	}
	groups := []site.Group{{Name: "web", Spread: site.SpreadOverHosts}, {Name: "db", Spread: site.SpreadOverHosts},
		{Name: "any"}}
	for i := range rapid.IntRange(0, 20).Draw(t, "nodes") {
		n := site.Node{Name: fmt.Sprint("node", i), ID: 1 + i, Limits: site.Limits{
			Cpus: rapid.SampledFrom([]float64{0, 0.1, 0.3, 1, 2}).
				Draw(t, "node's cpus"), Memory: rapid.SampledFrom([]int64{0, gib / 4, gib}).Draw(t, "node's memory"),
		}}
		if rapid.IntRange(0, 5).Draw(t, "fixed") == 0 {
			n.Host = rapid.SampledFrom(hosts).Draw(t, "host").Name
		}
		for k := range groups {
			if rapid.Bool().Draw(t, "in group") {
				groups[k].Nodes = append(groups[k].Nodes, n.Name)
			}
		}
		s.Nodes = append(s.Nodes, n)
	}
	s.Groups = groups
	return s, hosts
}

// settled returns the hosts with the nodes that are placed on them.
func settled(placed *site.Site, hosts []observe.Host, which func(string) bool) []observe.Host {
	all := slices.Clone(hosts)
	for i := range all {
		all[i].Nodes = slices.Clone(all[i].Nodes)
		for j := range placed.Nodes {
			if n := &placed.Nodes[j]; n.Host == all[i].Name && which(n.Name) {
				all[i].Nodes = append(all[i].Nodes, observe.Node{Node: spec.Node{Name: n.Name, ID: n.ID}, State: observe.Running})
			}
		}
	}
	return all
}

func homesOf(s *site.Site) map[string]string {
	all := map[string]string{}
	for i := range s.Nodes {
		all[s.Nodes[i].Name] = s.Nodes[i].Host
	}
	return all
}

// shuffled returns a site with the same contents in another order.
func shuffled(t *rapid.T, s *site.Site, hosts []observe.Host) (*site.Site, []observe.Host) {
	other := *s
	other.Nodes, other.Hosts, other.Groups = rapid.Permutation(s.Nodes).Draw(t, "nodes"), rapid.Permutation(s.Hosts).
		Draw(t, "hosts"), rapid.Permutation(s.Groups).Draw(t, "groups")
	return &other, rapid.Permutation(hosts).Draw(t, "seen")
}

// TestPlaceStable: placements do not depend on the order of declaration. Existing nodes stay where
// they are, even if only some exist, and no node is placed on a drained host.
func TestPlaceStable(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s, hosts := drawn(t)
		var first []string
		for i := range s.Nodes {
			if rapid.Bool().Draw(t, "first") {
				first = append(first, s.Nodes[i].Name)
			}
		}
		placed, err := place.Assign(s, hosts, first...)
		other, seen := shuffled(t, s, hosts)
		again, err2 := place.Assign(other, seen, rapid.Permutation(first).Draw(t, "first")...)
		if (err == nil) != (err2 == nil) {
			t.Fatalf("in another order: %v, %v", err, err2)
		}
		if err != nil {
			return
		}
		homes := homesOf(placed)
		if got := homesOf(again); !maps.Equal(homes, got) {
			t.Fatalf("in another order: %v, %v", homes, got)
		}
		if placed, err = place.Assign(s, settled(placed, hosts,
			func(name string) bool { return slices.Contains(first, name) }), first...); err != nil ||
			!maps.Equal(homes, homesOf(placed)) {
			t.Fatalf("with some of them there: %v, %v (%v)", homes, homesOf(placed), err)
		}
		occupied := settled(placed, hosts, func(string) bool { return true })
		if placed, err = place.Assign(other, occupied); err != nil || !maps.Equal(homes, homesOf(placed)) {
			t.Fatalf("with all of them there: %v, %v (%v)", homes, homesOf(placed), err)
		}
		for i := range s.Nodes {
			n := &s.Nodes[i]
			if h := hosts[slices.IndexFunc(hosts, func(h observe.Host) bool {
				return h.Name == homes[n.Name]
			})]; h.Drained != nil && n.Host != h.Name {
				t.Fatalf("%s comes to %s, which is drained", n.Name, h.Name)
			}
		}
	})
}

// TestPlaceSpreadsGroups: nodes of a group are spread as far as hosts have room, even if another
// host has more free.
func TestPlaceSpreadsGroups(t *testing.T) {
	s := crowd(6, site.Limits{Cpus: 1})
	s.Groups = []site.Group{{Name: "web", Spread: site.SpreadOverHosts, Nodes: []string{"node0", "node2", "node4"}}}
	seen := machines(2, 64, 2)
	placed, err := place.Assign(s, seen)
	if err != nil {
		t.Fatal(err)
	}
	if at := homesOf(placed); at["node0"] != "sv2" || at["node2"] == at["node4"] || at["node2"] == "sv2" ||
		at["node4"] == "sv2" {
		t.Errorf("they are at %v", at)
	}
	if all := place.SpreadViolations(placed, seen); len(all) != 0 {
		t.Errorf("crowded are %v", all)
	}
	for i := range s.Nodes {
		s.Nodes[i].Host = "sv2"
	}
	if all := place.SpreadViolations(s, seen); len(all) != 1 ||
		all[0].String() != "group web is not spread evenly over hosts: 3 nodes on sv2 and 0 on sv1" {
		t.Errorf("crowded are %v", all)
	}
}

// TestPlaceOversubscribed: processors can be oversubscribed, and memory cannot.
func TestPlaceOversubscribed(t *testing.T) {
	s := crowd(16, site.Limits{Cpus: 1, Memory: gib})
	s.Hosts[0].Oversubscribe = 2
	if got := homes(t, s, machines(8)); got["sv1"] != 16 {
		t.Errorf("8 processors, twice: %v", got)
	}
	seen := machines(8)
	seen[0].Memory = 15 * gib
	if _, err := place.Assign(s, seen); err == nil || !strings.Contains(err.Error(), "node15") {
		t.Errorf("16 nodes of 1 GiB on a host of 15: %v", err)
	}
}

// TestPlaceByDisk: a machine with a disk of its own is placed where there is room for it. A disk
// that already exists needs no more room.
func TestPlaceByDisk(t *testing.T) {
	s := crowd(2, site.Limits{Cpus: 1})
	for i := range s.Nodes {
		s.Nodes[i].VM = site.VM{Disk: site.QCow2, Size: 20 * gib,
			Disks: []site.Drive{{Name: "data", Disk: site.RawFile, Size: 10 * gib}, {Name: "lv", Disk: "/dev/vg/lv"}}}
	}
	seen := machines(64, 2)
	seen[0].Disk, seen[1].Disk = &observe.Disk{Total: 100 * gib, Free: 40 * gib},
		&observe.Disk{Total: 100 * gib, Free: 40 * gib}
	if got := homes(t, s, seen); got["sv1"] != 1 || got["sv2"] != 1 {
		t.Errorf("30 GiB each where 40 are free: %v", got)
	}
	seen[0].Nodes = []observe.Node{{Node: spec.Node{Name: "node0", ID: 1}}}
	if got := homes(t, s, seen); got["sv1"] != 2 {
		t.Errorf("one is there: %v", got)
	}
	seen[1].Disk.Free, seen[0].Disk.Free = gib, gib
	if _, err := place.Assign(s, seen); err == nil || !strings.Contains(err.Error(), "30720 MiB of disk") {
		t.Errorf("where 1 GiB is free: %v", err)
	}
}

// TestPlaceByEngine: a node is placed on a host that can run it, and takes an interface that is
// free.
func TestPlaceByEngine(t *testing.T) {
	s := crowd(3, site.Limits{})
	for i := range s.Nodes {
		s.Nodes[i].Engine, s.Nodes[i].NICs = "kvm", []site.NIC{{Network: "capture", Interface: "enp3s0"}}
	}
	seen := machines(64, 2, 2)
	seen[0].Engines = map[string]observe.Capabilities{"kvm": {Unable: observe.Missing{What: "QEMU"}}}
	_, err := place.Assign(s, seen)
	if err == nil || !strings.Contains(err.Error(),
		"node node2 has no host: none accepts nodes and has the engine kvm") {
		t.Errorf("three nodes for two hosts: %v", err)
	}
	s.Nodes = s.Nodes[:2]
	if got := homes(t, s, seen); got["sv2"] != 1 || got["sv3"] != 1 {
		t.Errorf("two nodes: %v", got)
	}
}

// TestPlaceAtData: a node that exists nowhere is placed on the host that has its volumes, unless
// several hosts have them, or a host is unknown and the node may be there.
func TestPlaceAtData(t *testing.T) {
	seen := machines(8, 8)
	for i := range 6 {
		seen[1].Volumes = append(seen[1].Volumes, observe.Volume{Name: "data", Node: fmt.Sprint("node", i)})
	}
	s := crowd(6, site.Limits{})
	if got := homes(t, s, seen); got["sv2"] != 6 {
		t.Errorf("all volumes are on sv2: %v", got)
	}
	seen[0].Volumes = seen[1].Volumes[:4]
	if got := homes(t, s, seen); got["sv1"] != 3 || got["sv2"] != 3 {
		t.Errorf("two volumes are on sv2 only: %v", got)
	}
	seen[1].Drained = &observe.Drain{}
	if got := homes(t, s, seen); got["sv1"] != 6 {
		t.Errorf("sv2 is drained: %v", got)
	}
	seen = append(machines(8), observe.Host{Name: "sv2", Unknown: true})
	seen[0].Volumes = []observe.Volume{{Name: "data", Node: "node0"}}
	if got := homes(t, s, seen); got["sv2"] != 6 {
		t.Errorf("sv2 is silent: %v", got)
	}
}

// TestPlaceOnTheWay: a node that was given to a host, or whose restore waits on one, is placed
// there, unless it exists somewhere.
func TestPlaceOnTheWay(t *testing.T) {
	for what, c := range map[string]struct {
		change func(seen []observe.Host)
		want   string
	}{
		"nothing":                    {func([]observe.Host) {}, "sv1"}, // it has the most room
		"it was given":               {func(seen []observe.Host) { given(seen, "sv2", false) }, "sv2"},
		"a release of it was":        {func(seen []observe.Host) { given(seen, "sv2", true) }, "sv1"},
		"to a host that is gone":     {func(seen []observe.Host) { given(seen, "sv9", false) }, "sv1"},
		"it is somewhere, and given": {func(seen []observe.Host) { given(seen, "sv2", false); there(seen, 2) }, "sv3"},
		"a restore waits": {func(seen []observe.Host) {
			seen[2].Restoring = &observe.RestoreProgress{Nodes: []string{"node0"}}
		}, "sv3"},
		"a restore of another": {func(seen []observe.Host) {
			seen[2].Restoring = &observe.RestoreProgress{Nodes: []string{"node9"}}
		}, "sv1"},
		"it is somewhere, and waits": {func(seen []observe.Host) {
			seen[2].Restoring = &observe.RestoreProgress{Nodes: []string{"node0"}}
			there(seen, 1)
		}, "sv2"},
	} {
		s, seen := crowd(1, site.Limits{Cpus: 1, Memory: gib}), machines(8, 4, 4)
		s.Hosts = append(s.Hosts, site.Host{Name: "sv3"})
		c.change(seen)
		if placed, err := place.Assign(s, seen); err != nil || placed.Nodes[0].Host != c.want {
			t.Errorf("%s: it is placed on %v, not on %s (%v)", what, placed, c.want, err)
		}
	}
}

// given makes the first host have given the first node away.
func given(seen []observe.Host, to string, staged bool) {
	seen[0].OutgoingMoves = []observe.OutgoingMove{{
		Node: observe.Node{Node: spec.Node{Name: "node0", Staged: staged}}, To: to,
	}}
}

func there(seen []observe.Host, i int) {
	seen[i].Nodes = []observe.Node{{Node: spec.Node{Name: "node0"}, State: observe.Running}}
}

// TestNoPlace: if a node cannot be placed at all, moves and losses cannot be computed.
func TestNoPlace(t *testing.T) {
	s, seen := crowd(1, site.Limits{Cpus: 99}), machines(8, 8)
	for what, of := range map[string]func() error{
		"place":     func() error { _, err := place.Assign(s, seen); return err },
		"leave":     func() error { _, err := place.ProposeDrain(s, seen, "sv1"); return err },
		"rebalance": func() error { _, err := place.Rebalance(s, seen); return err },
		"survive":   func() error { _, err := place.SimulateLoss(s, seen, 1); return err },
	} {
		if err := of(); err == nil || !strings.Contains(err.Error(), "99 cpus") {
			t.Errorf("%s: %v", what, err)
		}
	}
	if _, err := place.ProposeDrain(s, seen, "sv9"); problem.ExitCode(err) != int(problem.Unable) {
		t.Errorf("of a host that is not there: %v", err)
	}
}
