package test

import (
	"fmt"
	"net"
	"sync"
	"testing"
)

// TestIsolation: nodes reach nodes on their own networks, by name and address, and nothing else.
func TestIsolation(t *testing.T) {
	t.Parallel()
	const image = "\n[image.debian]\nsuite = \"bookworm\"\n"
	a := newSite(t, "it-one", image+`
[network.cam]
subnet = "10.99.5.0/24"
gateway = "10.99.5.1"
nat = true
[network.data]
subnet = "10.99.6.0/24"
[network.shut]
subnet = "10.99.14.0/24"
gateway = "10.99.14.1"
[node.both]
id = 11
net = { cam = "auto", data = "auto" }
[node.cam]
id = 12
net = { cam = "auto" }
[node.data]
id = 13
net = { data = "auto" }
[node.shut]
id = 14
net = { shut = "auto" }
`, nil)
	b := newSite(t, "it-two", image+`
[network.cam]
subnet = "10.99.7.0/24"
gateway = "10.99.7.1"
nat = true
[node.both]
id = 11
`, nil)
	a.do("up")
	b.do("up")
	// Of the host, only the gateway answers. No service is open, not even the one that listens on
	// all addresses.
	sshd, err := net.Listen("tcp", ":0")
	if err != nil {
		t.Fatal(err)
	}
	defer sshd.Close()
	port := sshd.Addr().(*net.TCPAddr).Port
	for _, address := range []string{"10.99.5.1", a.world(), "127.0.0.1"} {
		if a.run("shell", "cam", "--", "timeout", "1", "bash", "-c",
			fmt.Sprintf("exec 3<>/dev/tcp/%s/%d", address, port)).status == 0 {
			t.Errorf("a node reaches a service of the host at %s", address)
		}
	}
	var asking sync.WaitGroup // missing answers take time, so all are requested at once
	reach := func(s *site, from, to string, want bool) {
		timeout := map[bool]string{false: "2", true: "20"}[want]
		asking.Go(func() {
			if ping := s.run("shell", from, "--", "ping", "-n", "-c", "1", "-W", timeout, to).status == 0; ping != want {
				s.Errorf("from %s of %s to %s: ping %t, want %t", from, s.name, to, ping, want)
			}
		})
		asking.Go(func() {
			if tcp := s.run("shell", from, "--", "timeout", timeout, "bash", "-c",
				"exec 3<>/dev/tcp/"+to+"/22").status == 0; tcp != want {
				s.Errorf("from %s of %s to %s: tcp %t, want %t", from, s.name, to, tcp, want)
			}
		})
	}
	for _, c := range []struct {
		s        *site
		from, to string
		want     bool
	}{
		{a, "both", "10.99.5.12", true},
		{a, "both", "10.99.6.13", true},
		{a, "cam", "both", true},
		{a, "cam", "both.it-one", true},
		{a, "cam", "both.cam.it-one", true},
		{a, "data", "both", true},
		{a, "cam", "10.99.6.13", false}, // another network of the site
		{a, "cam", "10.99.6.11", false},
		{a, "cam", "10.99.14.14", false}, // two networks with gateways, through the host
		{a, "shut", "10.99.5.12", false},
		{a, "cam", "10.99.7.11", false}, // another site
		{a, "data", "10.99.7.11", false},
		{b, "both", "10.99.5.12", false},
		{b, "both", "10.99.6.13", false},
		{b, "both", "10.99.14.14", false},
	} {
		reach(c.s, c.from, c.to, c.want)
	}
	asking.Wait()
	// There is a way out only where declared. The host's own address stands for the outside.
	world := a.world()
	for node, want := range map[string]bool{"cam": true, "data": false} {
		out := a.run("shell", node, "--", "ping", "-n", "-c", "1", "-W", "1", world).status == 0
		if out != want {
			t.Errorf("from %s to %s: %t", node, world, out)
		}
	}
	for node, names := range map[string][]string{
		"both": {"both", "cam", "data", "cam.it-one", "data.it-one", "data.data.it-one", "both.cam.it-one"},
		"cam":  {"both", "cam", "both.it-one"},
		"data": {"both", "data", "both.it-one"},
	} {
		for _, name := range names {
			if r := a.run("shell", node, "--", "getent", "hosts", name); r.status != 0 {
				t.Errorf("node %s does not know %s", node, name)
			}
		}
	}
	for node, want := range map[string]string{"cam": "10.99.5.11", "data": "10.99.6.11"} {
		if got := a.sh(node, "getent hosts both | cut -d' ' -f1"); got != want {
			t.Errorf("on %s, both is at %s, not at %s", node, got, want)
		}
	}
	if got, want := b.sh("both", "getent hosts both.it-two | cut -d' ' -f1"), "10.99.7.11"; got != want {
		t.Errorf("in it-two, both is at %s", got)
	}

	// A network changes, and its nodes are not affected.
	before := a.init("cam")
	a.edit("site.toml", "nat = true", "nat = false")
	a.wantPlan("network cam")
	a.do("up")
	a.settled()
	if after := a.init("cam"); after != before {
		t.Errorf("init of cam was %s and is %s", before, after)
	}
	// A network is removed, and its nodes are changed to work without it.
	a.edit("site.toml", "[network.shut]\nsubnet = \"10.99.14.0/24\"\ngateway = \"10.99.14.1\"\n", "")
	a.edit("site.toml", "[node.shut]\nid = 14\nnet = { shut = \"auto\" }\n", "")
	a.wantPlan("names local", "destroy shut", "unnetwork shut")
	a.do("up")
	a.settled()
}

// world returns an address of the host that is on no network of a site.
func (s *site) world() string {
	s.Helper()
	out, err := sh("ip -4 -o route get 192.0.2.1 | grep -o 'src [0-9.]*' | cut -d' ' -f2")
	if err != nil || out == "" {
		s.Fatal(fmt.Errorf("the host has no address: %w", err))
	}
	return out
}
