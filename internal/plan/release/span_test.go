package release

import (
	"net/netip"
	"strings"
	"testing"

	"orrery/internal/observe"
	"orrery/internal/plan"
	"orrery/internal/site"
	"orrery/internal/site/spec"
)

// TestSpan: networks across hosts that a switch makes, live ones and quarantines, are joined, each
// with its own VXLAN id. Repaired networks stay as they are.
func TestSpan(t *testing.T) {
	s := &site.Site{Name: "toykat", Images: []site.Image{{Name: "debian", Suite: "bookworm"}},
		Networks: []site.Network{{Name: "lan", Subnet: netip.MustParsePrefix("10.0.0.0/24")}}}
	var hosts []observe.Host
	for i, name := range []string{"sv1", "sv2"} {
		at := netip.AddrFrom4([4]byte{10, 8, 1, byte(i + 1)}).String()
		s.Hosts = append(s.Hosts, site.Host{Name: name, Address: at})
		s.Nodes = append(s.Nodes, site.Node{Name: string(rune('a' + i)), ID: 11 + i, Image: "debian", Engine: "fake",
			Host: name, Release: 700, NICs: []site.NIC{{Network: "lan", Address: netip.MustParseAddr("10.0.0.11").Next()}}})
		hosts = append(hosts, observe.Host{Name: name, Cpus: 8, Memory: 1 << 34,
			Engines:   map[string]observe.Capabilities{"fake": {MoveNIC: true, Remount: true}},
			Addresses: []observe.Address{{Prefix: at + "/24", Link: "eth0", MTU: 1500}}})
	}
	for i := range hosts {
		for _, release := range []int{0, 700} { // 0 is live
			of := *s
			of.Stage = release
			maker := spec.NewBuilder(&of)
			maker.MTUs = map[string]int{"lan": 1450}
			n := s.Nodes[i]
			n.Release = release
			spelt, err := maker.Node(&n)
			if err != nil {
				t.Fatal(err)
			}
			hosts[i].Nodes = append(hosts[i].Nodes, observe.Node{Node: *spelt, State: observe.Running, Configured: true})
		}
	}
	made := func() map[string]spec.Network {
		t.Helper()
		p, err := Switch(s, hosts, Goal{To: map[string]int{"a": 700, "b": 700}, Releases: map[int]*site.Site{0: s, 700: s}})
		if err != nil {
			t.Fatal(err)
		}
		all := map[string]spec.Network{}
		for _, step := range p.Steps {
			if step.Kind == plan.MakeNetwork {
				all[step.Host+" "+step.Network.Site] = *step.Network
			}
		}
		return all
	}
	all := made()
	for where, id := range map[string]int{"sv1 toykat": site.VNI("toykat", "lan"),
		"sv1 toykat.0": site.VNI("toykat.0", "lan")} {
		want := spec.VXLAN{ID: id, Local: "10.8.1.1", Peers: "10.8.1.2 " + site.MAC("toykat", "b", "lan")}
		if n := all[where]; n.VXLAN != want || n.MTU != 1450 {
			t.Errorf("%s is %+v", where, n)
		}
	}
	if len(all) != 4 {
		t.Errorf("made are %v", all)
	}

	// Existing networks are left alone. A network that was damaged, or made for other hosts, is
	// made as desired.
	for i, name := range []string{"sv1", "sv2"} {
		for where, n := range all {
			if strings.HasPrefix(where, name) {
				hosts[i].Networks = append(hosts[i].Networks, observe.Network{Network: n})
			}
		}
	}
	if again := made(); len(again) != 0 {
		t.Errorf("made again are %v", again)
	}
	hosts[0].Networks[0].Drift = []observe.NetworkDrift{observe.FiltersChanged}
	hosts[1].Networks[0].VXLAN.Peers = "10.8.1.9"
	for where, n := range made() {
		if n != all[where] {
			t.Errorf("%s is %v, not %v", where, n, all[where])
		}
	}
	if n := len(made()); n != 2 {
		t.Errorf("%d networks are mended", n)
	}

	// An unselected node counts where it is, wherever the site declares it now.
	for i, name := range []string{"sv1", "sv2"} {
		hosts[i].Networks = nil
		for where, n := range all {
			if strings.HasPrefix(where, name) {
				hosts[i].Networks = append(hosts[i].Networks, observe.Network{Network: n})
			}
		}
	}
	s.Nodes[1].Host = "sv1"
	hosts[1].Nodes[0].Active = true
	p, err := Switch(s, hosts, Goal{To: map[string]int{"a": 700}, Releases: map[int]*site.Site{0: s, 700: s}})
	if err != nil {
		t.Fatal(err)
	}
	for _, step := range p.Steps {
		if step.Kind == plan.MakeNetwork {
			t.Errorf("%s becomes %+v", step.Host, step.Network)
		}
	}
}

// TestSpanOfSet: if a node has releases in quarantine on several hosts and none is live, the host
// of the instance that must become live counts.
func TestSpanOfSet(t *testing.T) {
	for to, at := range map[int]string{700: "sv1", 701: "sv3"} {
		s := &site.Site{Name: "toykat", Images: []site.Image{{Name: "debian", Suite: "bookworm"}},
			Networks: []site.Network{{Name: "lan", Subnet: netip.MustParsePrefix("10.0.0.0/24")}}}
		var hosts []observe.Host
		for i, name := range []string{"sv1", "sv2", "sv3"} {
			address := netip.AddrFrom4([4]byte{10, 8, 1, byte(i + 1)}).String()
			s.Hosts = append(s.Hosts, site.Host{Name: name, Address: address})
			hosts = append(hosts, observe.Host{Name: name, Cpus: 8, Memory: 1 << 34,
				Engines:   map[string]observe.Capabilities{"fake": {MoveNIC: true, Remount: true}},
				Addresses: []observe.Address{{Prefix: address + "/24", Link: "eth0", MTU: 1500}}})
		}
		for i, name := range []string{"a", "b"} {
			s.Nodes = append(s.Nodes, site.Node{Name: name, ID: 11 + i, Image: "debian", Engine: "fake",
				NICs: []site.NIC{{Network: "lan", Address: netip.AddrFrom4([4]byte{10, 0, 0, byte(11 + i)})}}})
		}
		s.Nodes[0].Host = "sv1"
		releases := map[int]*site.Site{0: s}
		spelt := func(node, release int) observe.Node {
			of := *s
			of.Nodes = append([]site.Node(nil), s.Nodes...)
			for i := range of.Nodes {
				of.Nodes[i].Release = release
			}
			made := of
			releases[release] = &made
			of.Stage = release
			maker := spec.NewBuilder(&of)
			maker.MTUs = map[string]int{"lan": 1450}
			n, err := maker.Node(&of.Nodes[node])
			if err != nil {
				t.Fatal(err)
			}
			return observe.Node{Node: *n, State: observe.Running, Configured: true, Proven: n.Config.Health}
		}
		hosts[0].Nodes = []observe.Node{spelt(0, 700)}
		hosts[1].Nodes = []observe.Node{spelt(1, 0)}
		hosts[2].Nodes = []observe.Node{spelt(0, 701)}
		p, err := Switch(s, hosts, Goal{To: map[string]int{"a": to}, Releases: releases})
		if err != nil {
			t.Fatal(err)
		}
		made := map[string]string{}
		for _, step := range p.Steps {
			if step.Kind == plan.MakeNetwork && step.Network.Site == "toykat" {
				made[step.Host] = step.Network.VXLAN.Peers
			}
		}
		if len(made) != 1 || made[at] != "10.8.1.2 "+site.MAC("toykat", "b", "lan") {
			t.Errorf("release %d is on %s, and the networks are %v", to, at, made)
		}
	}
}
