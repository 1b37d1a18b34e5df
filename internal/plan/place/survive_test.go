package place_test

import (
	"fmt"
	"strings"
	"testing"

	"orrery/internal/observe"
	"orrery/internal/plan/place"
	"orrery/internal/problem"
	"orrery/internal/site"
)

// over returns a site of hosts with nodes of one size.
func over(hosts []observe.Host, nodes int, limits site.Limits) *site.Site {
	s := crowd(nodes, limits)
	s.Hosts = nil
	for _, h := range hosts {
		s.Hosts = append(s.Hosts, site.Host{Name: h.Name})
	}
	return s
}

func survived(t *testing.T, s *site.Site, hosts []observe.Host, lost int) []place.HostLoss {
	t.Helper()
	all, err := place.SimulateLoss(s, hosts, lost)
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// TestSurvive: whichever host is lost, its nodes find room on the others, or those without room are
// named.
func TestSurvive(t *testing.T) {
	hosts, limits := machines(4, 4, 4), site.Limits{Cpus: 1, Memory: gib}
	all := survived(t, over(hosts, 8, limits), hosts, 1)
	if len(all) != 3 {
		t.Fatalf("%d ways to lose one of three", len(all))
	}
	moved := 0
	for _, l := range all {
		if len(l.Lost) > 0 {
			t.Errorf("without %v: %+v", l.Hosts, l.Lost)
		}
		for _, m := range l.Moved {
			if m.Host == l.Hosts[0] {
				t.Errorf("%s goes to a host that is lost", m.Node)
			}
		}
		moved += len(l.Moved)
	}
	if moved != 8 {
		t.Errorf("%d of 8 nodes move", moved)
	}
	for _, l := range survived(t, over(hosts, 10, limits), hosts, 1) {
		if len(l.Lost) != 2 || !strings.Contains(l.Lost[0].Why, "has 1 cpus and 1024 MiB free") {
			t.Errorf("8 processors for 10 nodes, without %v: %+v", l.Hosts, l.Lost)
		}
	}
	if all = survived(t, over(hosts, 8, limits), hosts, 2); len(all) != 3 || len(all[0].Lost) != 4 {
		t.Errorf("one host is left for 8 nodes: %+v", all)
	}
}

// TestSurviveTied: nodes that only one host can have are named, with the reason.
func TestSurviveTied(t *testing.T) {
	for why, change := range map[string]func(n *site.Node, other *observe.Host){
		"it is tied to that host": func(n *site.Node, _ *observe.Host) { n.Host = "sv1" },
		"PCI functions":           func(n *site.Node, _ *observe.Host) { n.VM.PCI = []string{"0000:01:00.0"} },
		"a device of": func(n *site.Node,
			_ *observe.Host) {
			n.VM.Disks = []site.Drive{{Disk: "/dev/vg/lv"}}
		},
		"has the engine kvm": func(n *site.Node, other *observe.Host) {
			n.Engine, other.Engines = "kvm", map[string]observe.Capabilities{"kvm": {Unable: observe.Missing{What: "QEMU"}}}
		},
		"a free interface for it": func(n *site.Node, _ *observe.Host) {
			n.NICs = []site.NIC{{Network: "capture", Interface: "enp3s0"}}
		},
	} {
		hosts := machines(8, 4)
		s := over(hosts, 2, site.Limits{Cpus: 1})
		s.Nodes[1].Host, s.Nodes[1].NICs = "sv2", []site.NIC{{Network: "capture", Interface: "enp3s0"}}
		change(&s.Nodes[0], &hosts[1])
		l := survived(t, s, hosts, 1)[0] // without sv1, which has the most room
		if len(l.Lost) != 1 || l.Lost[0].Node != "node0" || !strings.Contains(l.Lost[0].Why, why) || l.Lost[0].Cure == "" {
			t.Errorf("%s: %+v", why, l)
		}
	}
}

// TestSurviveCrowded: a group that would no longer be spread is named, and a drained host accepts
// no nodes.
func TestSurviveCrowded(t *testing.T) {
	hosts := machines(8, 8, 4)
	s := over(hosts, 6, site.Limits{Cpus: 1})
	s.Groups = []site.Group{{Name: "web", Spread: site.SpreadOverHosts,
		Nodes: []string{"node0", "node1", "node2", "node3"}}}
	for i, host := range []string{"sv1", "sv1", "sv2", "sv3", "sv2", "sv3"} {
		s.Nodes[i].Host = host
	}
	hosts = settled(s, hosts, func(string) bool { return true })
	for i := range s.Nodes {
		s.Nodes[i].Host = ""
	}
	for _, l := range survived(t, s, hosts, 1) {
		if !l.IsHarmless() {
			t.Errorf("without %v: %+v", l.Hosts, l)
		}
	}
	hosts[2].Cpus = 2 // it is full
	l := survived(t, s, hosts, 1)[0]
	if len(l.Lost) > 0 || len(l.Crowded) != 1 || l.Crowded[0].Group != "web" || l.Crowded[0].Nodes != 3 || l.IsHarmless() {
		t.Errorf("without %v: %+v", l.Hosts, l)
	}
	hosts[1].Drained = &observe.Drain{}
	if l := survived(t, s, hosts, 1)[0]; len(l.Lost) != 2 {
		t.Errorf("without %v, and sv2 drained: %+v", l.Hosts, l)
	}
}

func TestSurviveWhat(t *testing.T) {
	few, many := machines(4, 4), machines(make([]int, 200)...)
	dark := machines(4, 4)
	dark[1].Unknown = true
	for _, c := range []struct {
		hosts []observe.Host
		lost  int
		kind  problem.Kind
	}{{few, 0, problem.Usage}, {few, 2, problem.Usage}, {few[:1], 1, problem.Usage}, {many, 3, problem.Usage},
		{dark, 1, problem.Unable}} {
		if _, err := place.SimulateLoss(over(c.hosts, 1, site.Limits{}), c.hosts,
			c.lost); problem.ExitCode(err) != int(c.kind) {
			t.Errorf("%d of %d: %v", c.lost, len(c.hosts), err)
		}
	}
}

func BenchmarkSurvive(b *testing.B) {
	hosts := machines(make([]int, 300)...)
	for i := range hosts {
		hosts[i] = observe.Host{Name: fmt.Sprint("sv", i+1), Cpus: 64, Memory: 256 * gib}
	}
	s := over(hosts, 6000, site.Limits{Cpus: 1, Memory: gib})
	for b.Loop() {
		if _, err := place.SimulateLoss(s, hosts, 1); err != nil {
			b.Fatal(err)
		}
	}
}
