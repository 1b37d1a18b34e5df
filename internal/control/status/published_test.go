package status

import (
	"net/netip"
	"os"
	"testing"

	"orrery/internal/site"
	"orrery/internal/site/spec"
)

// TestPublished: what a user types into a browser, wherever the node is.
func TestPublished(t *testing.T) {
	own, err := os.Hostname()
	if err != nil {
		t.Skip(err)
	}
	s := &site.Site{
		Name: "wiki", Hosts: []site.Host{{Name: "sv1", Address: "local"}, {Name: "sv2", Address: "root@sv2.example:2222"},
			{Name: "sv3", Address: "root@[2001:db8::3]"}},
		Networks: []site.Network{{Name: "lan", Subnet: netip.MustParsePrefix("10.0.0.0/24"),
			Gateway: netip.MustParseAddr("10.0.0.1")}},
		Nodes: []site.Node{{Name: "web", NICs: []site.NIC{{Network: "lan", Address: netip.MustParseAddr("10.0.0.11")}}}},
	}
	for _, c := range []struct{ text, host, ports, node, url string }{
		{"8080:80", "sv1", "tcp/8080", "80", "http://" + own + ":8080/"},
		{"8080:80", "sv2", "tcp/8080", "80", "http://sv2.example:8080/"},
		{"8080:80", "sv3", "tcp/8080", "80", "http://[2001:db8::3]:8080/"},
		{"80:80", "sv2", "tcp/80", "80", "http://sv2.example/"},
		{"443:443", "sv2", "tcp/443", "443", "https://sv2.example/"},
		{"8443:443", "sv2", "tcp/8443", "443", "https://sv2.example:8443/"},
		{"10.1.2.3:8080:80", "sv2", "tcp/8080", "80", "http://10.1.2.3:8080/"},
		{"53:53/udp", "sv2", "udp/53", "53", ""},
		{"8000-8010:9000-9010", "sv2", "tcp/8000-8010", "9000-9010", ""},
	} {
		p, err := site.ParsePublish(c.text)
		if err != nil {
			t.Fatal(err)
		}
		s.Nodes[0].Publish = []site.Publish{p}
		got := publishedPorts(spec.NewBuilder(s), &s.Nodes[0], c.host)
		if len(got) != 1 || got[0].Ports != c.ports || got[0].Node != c.node || got[0].URL != c.url {
			t.Errorf("%s on %s: %+v", c.text, c.host, got)
		}
	}
	s.Stage = 700
	if got := publishedPorts(spec.NewBuilder(s), &s.Nodes[0], "sv1"); got != nil {
		t.Errorf("in quarantine: %+v", got)
	}
}
