package plan_test

import (
	"net/netip"
	"slices"
	"strings"
	"testing"

	"orrery/internal/observe"
	"orrery/internal/plan"
	"orrery/internal/site"
	"orrery/internal/site/spec"
)

// wiki returns a site with two nodes that publish ports.
func wiki(t *testing.T, web, db string) *site.Site {
	s := &site.Site{
		Name: "rapid", Images: []site.Image{{Name: "debian", Suite: "bookworm"}},
		Hosts: []site.Host{{Name: "sv1"}, {Name: "sv2", Address: "root@10.8.1.2"}},
		Networks: []site.Network{
			{Name: "lan", Subnet: netip.MustParsePrefix("10.0.0.0/24"), Gateway: netip.MustParseAddr("10.0.0.1"), MTU: 1450},
			{Name: "dmz", Subnet: netip.MustParsePrefix("10.0.1.0/24"), Gateway: netip.MustParseAddr("10.0.1.1"), MTU: 1450},
		},
	}
	for i, text := range []string{web, db, ""} {
		n := site.Node{
			Name: []string{"web", "db", "idle"}[i], ID: 11 + i, Image: "debian", Engine: "fake", Host: "sv1", Autostart: true,
			NICs: []site.NIC{{Network: []string{"lan", "dmz", "lan"}[i],
				Address: netip.AddrFrom4([4]byte{10, 0, []byte{0, 1, 0}[i], byte(11 + i)})}},
		}
		for word := range strings.FieldsSeq(text) {
			p, err := site.ParsePublish(word)
			if err != nil {
				t.Fatal(err)
			}
			n.Publish = append(n.Publish, p)
		}
		s.Nodes = append(s.Nodes, n)
	}
	return s
}

// ports returns what a host has published, by network.
func (f *fleet) ports(host int) string {
	var all []string
	for _, n := range f.hosts[host].Observe().Networks {
		if n.Publish != "" {
			all = append(all, n.Name+": "+n.Publish)
		}
	}
	return strings.Join(all, "; ")
}

// TestPublish: ports are part of the networks of a host. They change without disturbing a node,
// show as missing when another program removes them, and go with their node and with the site.
func TestPublish(t *testing.T) {
	f := newFleet("sv1", "sv2")
	want := func(ports string) {
		t.Helper()
		if got := f.ports(0); got != ports {
			t.Errorf("published is %q, not %q", got, ports)
		}
	}
	p := f.reach(t, wiki(t, "8080:80", "10.8.1.1:5432:5432"))
	want("dmz: db=10.8.1.1:5432:5432/tcp>10.0.1.12; lan: web=8080:80/tcp>10.0.0.11")
	if p.Steps[0].Settings["net.ipv4.ip_forward"] != "1" {
		t.Errorf("the host does not forward:\n%s", text(p))
	}
	if again := f.up(t, wiki(t, "8080:80", "10.8.1.1:5432:5432"), plan.Goal{}); !again.Empty() {
		t.Errorf("the second plan is not empty:\n%s", text(again))
	}

	p = f.reach(t, wiki(t, "8081:80 8082:80/udp", "10.8.1.1:5432:5432"))
	want("dmz: db=10.8.1.1:5432:5432/tcp>10.0.1.12; lan: web=8081:80/tcp>10.0.0.11,web=8082:80/udp>10.0.0.11")
	if len(p.Steps) != 1 || len(p.Steps[0].Disturbs) > 0 || p.Steps[0].Reason != "published ports changed" {
		t.Errorf("the plan is\n%s", text(p))
	}

	// Another program removes a port; a plan for another node leaves that alone.
	hosts := f.observe()
	i := slices.IndexFunc(hosts[0].Networks, func(n observe.Network) bool { return n.Name == "dmz" })
	hosts[0].Networks[i].Publish = ""
	s := wiki(t, "8081:80 8082:80/udp", "10.8.1.1:5432:5432")
	for selected, steps := range map[string]int{"": 1, "db": 1, "web": 0} {
		goal := plan.Goal{}
		if selected != "" {
			goal.Nodes = map[string]bool{selected: true}
		}
		p, err := plan.Up(s, hosts, goal)
		if err != nil || len(p.Steps) != steps {
			t.Errorf("up %s: %v\n%s", selected, err, text(p))
		}
	}

	// A node that is destroyed leaves no port behind, although its network stays.
	p = plan.Down(s, f.observe(), plan.Goal{Nodes: map[string]bool{"web": true}})
	if r := f.run(p, 4); !r.OK() {
		t.Fatalf("%+v\n%s", r.Failed, text(p))
	}
	want("dmz: db=10.8.1.1:5432:5432/tcp>10.0.1.12")
	f.reach(t, s)
	if r := f.run(plan.Down(s, f.observe(), plan.Goal{}), 4); !r.OK() {
		t.Fatalf("%+v", r.Failed)
	}
	want("")
}

// TestPublishElsewhere: ports are those of the host that the node is on.
func TestPublishElsewhere(t *testing.T) {
	f := newFleet("sv1", "sv2")
	s := wiki(t, "8080:80", "")
	f.reach(t, s)
	s.Nodes[0].Host = "sv2"
	f.reach(t, s)
	if f.ports(0) != "" || f.ports(1) != "lan: web=8080:80/tcp>10.0.0.11" {
		t.Errorf("published is %q and %q", f.ports(0), f.ports(1))
	}
	s.Nodes[1].Publish = s.Nodes[0].Publish // the same port of another host
	f.reach(t, s)
	if f.ports(0) != "dmz: db=8080:80/tcp>10.0.1.12" {
		t.Errorf("published is %q", f.ports(0))
	}
}

// TestPublishOnWire: a wire joins the hosts of a network, so a host is not told of nodes elsewhere. The
// host that a node has left loses its ports all the same, when only that node is selected.
func TestPublishOnWire(t *testing.T) {
	f := newFleet("sv1", "sv2")
	s := wiki(t, "8080:80", "")
	s.Networks[0].Interface, s.Networks[0].VLAN, s.Networks[0].NAT = "enp1", 100, true
	f.reach(t, s)
	if f.ports(0) != "lan: web=8080:80/tcp>10.0.0.11" {
		t.Errorf("published is %q", f.ports(0))
	}
	s.Nodes[0].Host = "sv2"
	p := f.up(t, s, plan.Goal{Nodes: map[string]bool{"web": true}})
	if r := f.run(p, 4); !r.OK() {
		t.Fatalf("%+v\n%s", r.Failed, text(p))
	}
	if f.ports(0) != "" || f.ports(1) != "lan: web=8080:80/tcp>10.0.0.11" {
		t.Errorf("published is %q and %q\n%s", f.ports(0), f.ports(1), text(p))
	}
}

// TestPublishRefused: what check cannot know.
func TestPublishRefused(t *testing.T) {
	other := []spec.Network{{Site: "meerkat", Name: "lan", Publish: "page=8000-8100:8000-8100/tcp>10.9.0.9"}}
	listens := func(proto, at string, port uint16) []observe.Listener {
		return []observe.Listener{{Proto: proto, Address: netip.MustParseAddr(at), Port: port}}
	}
	none := observe.HostNetworking{}
	program := func(proto, at string, port uint16) observe.HostNetworking {
		return observe.HostNetworking{Listeners: listens(proto, at, port)}
	}
	for what, c := range map[string]struct {
		web, db string
		around  observe.HostNetworking
		why     string
	}{
		"free":               {"8080:80", "8081:80", none, ""},
		"other protocol":     {"8080:80", "8080:80/udp", none, ""},
		"twice":              {"8080:80", "8080:80", none, "already published by node"},
		"twice, a range":     {"8000-8100:8000-8100", "10.8.1.1:8080:80", none, "already published by node"},
		"another site":       {"8080:80", "", observe.HostNetworking{Networks: other}, "node page of site meerkat"},
		"another port of it": {"8101:80", "", observe.HostNetworking{Networks: other}, ""},
		"a program":          {"8080:80", "", program("tcp", "::", 8080), "listens at [::]:8080"},
		"a program at another address": {"10.8.1.1:8080:80", "",
			program("tcp", "10.8.2.1", 8080), ""},
		"a program of udp": {"8080:80", "", program("udp", "0.0.0.0", 8080), ""},
		"an IPv6 address":  {"8080:80", "", program("tcp", "2001:db8::1", 8080), ""},
		"not the host's":   {"10.8.1.99:8080:80", "", none, "10.8.1.99, which is not an address of the host"},
	} {
		f := newFleet("sv1", "sv2")
		f.hosts[0].Around = c.around
		p, err := plan.Up(wiki(t, c.web, c.db), f.observe(), plan.Goal{})
		switch {
		case c.why == "" && err != nil:
			t.Errorf("%s: %v", what, err)
		case c.why != "" && (err == nil || !strings.Contains(err.Error(), c.why) ||
			!strings.Contains(err.Error(), "site.toml")):
			t.Errorf("%s: %v\n%s", what, err, text(p))
		}
	}

	// What is published already is not refused when a program begins to listen.
	f := newFleet("sv1", "sv2")
	f.reach(t, wiki(t, "8080:80", ""))
	f.hosts[0].Around.Listeners = listens("tcp", "0.0.0.0", 8080)
	f.reach(t, wiki(t, "8080:80 8081:81", ""))
}
