package plan_test

import (
	"net/netip"
	"testing"

	"orrery/internal/plan"
	"orrery/internal/site"
	"orrery/internal/site/service"
)

// TestActiveServices: each host leads to its own node that answers. A change of services changes only the network,
// and a node that is down keeps its rules.
func TestActiveServices(t *testing.T) {
	node := func(id byte, name, host string) site.Node {
		return site.Node{Name: name, ID: int(id), Image: "debian", Engine: "fake", Host: host, Autostart: true,
			NICs: []site.NIC{{Network: "lan", Address: netip.AddrFrom4([4]byte{10, 0, 0, id})}}}
	}
	s := &site.Site{
		Name: "rapid", Images: []site.Image{{Name: "debian", Suite: "bookworm"}},
		Hosts: []site.Host{{Name: "sv1"}, {Name: "sv2", Address: "root@10.8.1.2"}},
		Networks: []site.Network{
			{Name: "lan", Subnet: netip.MustParsePrefix("10.0.0.0/24"), Gateway: netip.MustParseAddr("10.0.0.1"), MTU: 1450},
		},
		Nodes: []site.Node{node(11, "infra-sv1", "sv1"), node(12, "infra-sv2", "sv2"), node(13, "web", "sv1")},
		Active: []service.Active{
			{Name: "names", Kind: service.DNS, Network: "lan", Nodes: []string{"infra-sv1", "infra-sv2"}},
		},
	}
	f := newFleet("sv1", "sv2")
	want := func(first, second string) {
		t.Helper()
		for i, want := range []string{first, second} {
			for _, n := range f.hosts[i].Observe().Networks {
				if n.Answers != want {
					t.Errorf("host %d answers by %q, not %q", i, n.Answers, want)
				}
			}
		}
	}
	p := f.reach(t, s)
	want("dns>10.0.0.11", "dns>10.0.0.12")
	if p.Steps[0].Settings["net.ipv4.ip_forward"] != "1" {
		t.Errorf("the host does not forward:\n%s", text(p))
	}
	if again := f.up(t, s, plan.Goal{}); !again.Empty() {
		t.Errorf("the second plan is not empty:\n%s", text(again))
	}

	s.Active = append(s.Active,
		service.Active{Name: "time", Kind: service.NTP, Network: "lan", Nodes: []string{"infra-sv1"}})
	p = f.reach(t, s)
	want("dns>10.0.0.11,ntp>10.0.0.11", "dns>10.0.0.12")
	if len(p.Steps) != 1 || len(p.Steps[0].Disturbs) > 0 || p.Steps[0].Reason != "active services changed" {
		t.Errorf("the plan is\n%s", text(p))
	}

	if r := f.run(plan.Down(s, f.observe(), plan.Goal{Nodes: map[string]bool{"infra-sv1": true}}), 4); !r.OK() {
		t.Fatalf("%+v", r.Failed)
	}
	want("dns>10.0.0.11,ntp>10.0.0.11", "dns>10.0.0.12")
	f.reach(t, s)
	if r := f.run(plan.Down(s, f.observe(), plan.Goal{}), 4); !r.OK() {
		t.Fatalf("%+v", r.Failed)
	}
	want("", "")
}
