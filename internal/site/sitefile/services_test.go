package sitefile

import (
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// TestServicesOf: entries select nodes in their order, by names, globs, braces and selectors. The network may
// be left out. The nodes get the role.
func TestServicesOf(t *testing.T) {
	s, err := Load(siteDir(t, map[string]string{"site.toml": `
site.name = "x"
image.debian.suite = "bookworm"
network.lan.subnet = "10.1.0.0/24"
network.data.subnet = "10.2.0.0/24"
node."web{1..3}".id = 11
node.weba.id = 21
node.webb.id = 22
node.other = { id = 31, roles = ["db"] }
group.front.nodes = ["web1", "web3"]
service.all = { address = "10.1.0.250", nodes = ["web3", "group=front", "web{a,b}", "role=db"] }
service.range = { address = "10.2.0.251", nodes = ["web{2..3}"], advertise = "1s" }
`, "roles/db/role.toml": ""}))
	if err != nil {
		t.Fatal(err)
	}
	all, _ := s.Service("all")
	some, _ := s.Service("range")
	if !slices.Equal(all.Nodes, []string{"web3", "web1", "weba", "webb", "other"}) || all.Network != "lan" ||
		all.Advertise != 200*time.Millisecond || all.Takeover != "fast" {
		t.Errorf("%+v", all)
	}
	if !slices.Equal(some.Nodes, []string{"web2", "web3"}) || some.Network != "data" || some.Advertise != time.Second {
		t.Errorf("%+v", some)
	}
	for name, want := range map[string][]string{"web1": {"orrery/keepalived"}, "other": {"db", "orrery/keepalived"}} {
		if n, _ := s.Node(name); !slices.Equal(n.Roles, want) {
			t.Errorf("node %s has roles %v", name, n.Roles)
		}
	}
	if n, _ := s.Node("web3"); len(n.NICs[0].Moving) != 1 || len(n.NICs[1].Moving) != 1 {
		t.Errorf("web3: %+v", n.NICs)
	}
	if n, _ := s.Node("web2"); len(n.NICs[0].Moving) != 0 {
		t.Errorf("web2: %+v", n.NICs)
	}
	if _, ok := s.Role("orrery/keepalived"); !ok {
		t.Error("the site does not have the role")
	}
}

// TestBraces: whatever an entry is, it is expanded to few names, or refused.
func TestBraces(t *testing.T) {
	for entry, want := range map[string][]string{
		"web": {"web"}, "web{a,b}x": {"webax", "webbx"}, "web{9..11}": {"web9", "web10", "web11"}, "{a,b}": {"a", "b"},
		"a{}": {"a"}, "a}": nil, "a{b": nil, "a{b,c}{d}": nil, "a{1..1000}": nil,
	} {
		if got, p := braces(entry); !slices.Equal(got, want) || (p == nil) != (want != nil) {
			t.Errorf("%s: %v, %v", entry, got, p)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		entry := rapid.StringMatching(`[a-c{},.0-9*]{0,40}`).Draw(t, "entry")
		if got, p := braces(entry); (p == nil) == (len(got) == 0) || len(got) > maxBraces {
			t.Errorf("%q: %v, %v", entry, got, p)
		}
	})
}
