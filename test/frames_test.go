package test

import (
	"fmt"
	"net"
	"slices"
	"strings"
	"testing"

	"orrery/test/frames"
	"orrery/test/need"
)

// TestFrames: root in a node sends frames of every kind. Its neighbour receives those that an
// ordinary host would send, and the others have no effect on it.
func TestFrames(t *testing.T) {
	t.Parallel()
	s := newSite(t, "it-frames", `
[network.lan]
subnet = "10.99.163.0/24"
gateway = "10.99.163.1"
nat = true
[image.debian]
suite = "bookworm"
[node.evil]
id = 11
[node.good]
id = 12
`, nil)
	s.do("up")
	program := need.Attack(t)
	for _, node := range []string{"evil", "good"} {
		s.do("cp", program, node+":/root/attack")
	}
	address := func(node string) string { return strings.TrimSpace(s.sh(node, "cat /sys/class/net/eth0/address")) }
	// hear makes one node send frames of all or some kinds, and returns the kinds that the other
	// receives.
	hear := func(kinds ...string) []string {
		// It listens in the background, so that it is ready when the frames are sent.
		s.sh("good", "nohup /root/attack listen eth0 2s "+address("evil")+" 10.99.163.11 >/root/heard 2>&1 & "+
			"while ! grep -q listening /root/heard; do sleep 0.1; done")
		s.sh("evil", "/root/attack frames eth0 "+address("good")+" 10.99.163.12 "+strings.Join(kinds, " "))
		return strings.Fields(s.sh("good", "while pgrep -x attack >/dev/null; do sleep 0.1; done; cat /root/heard"))[1:]
	}
	heard := hear()
	for _, name := range heard {
		if k, _ := frames.Named(name); !k.Allowed {
			t.Errorf("a node hears %s of its neighbour", name)
		}
	}
	// Group membership reports need not reach nodes that are not routers.
	for _, name := range []string{"ipv4-udp", "ipv4-tcp", "arp-request", "arp-probe", "dhcp-question",
		"ipv6-udp", "ns", "na", "dad", "rs", "ping6"} {
		if !slices.Contains(heard, name) {
			t.Errorf("a node does not hear %s of its neighbour: %s", name, strings.Join(heard, " "))
		}
	}
	if routes := s.sh("good", "ip -6 route show default"); routes != "" {
		t.Errorf("a node believes its neighbour to be a router: %s", routes)
	}
	if addresses := s.sh("good", "ip -6 -o addr show dev eth0 scope global"); addresses != "" {
		t.Errorf("a node has an address by its neighbour: %s", addresses)
	}

	everywhere, err := net.Listen("tcp", ":0")
	if err != nil {
		t.Fatal(err)
	}
	defer everywhere.Close()
	port := everywhere.Addr().(*net.TCPAddr).Port
	reached := s.sh("evil", fmt.Sprintf("/root/attack reach 10.99.163.12:22 10.99.163.1:%d %s:%d",
		port, s.world(), port))
	if strings.TrimSpace(reached) != "10.99.163.12:22" {
		t.Errorf("a node reaches %s", reached)
	}

	// Protocols that the site file allows pass, and no others.
	s.edit("site.toml", "nat = true", "nat = true\nprotocols = [\"ptp\"]")
	s.edit("site.toml", "id = 11", "id = 11\nipv6.lan = [\"2001:db8::9\"]")
	s.do("up")
	s.settled()
	got := hear("ipv6-global", "ptp", "experimental", "ra", "ipv6-udp")
	if want := []string{"ipv6-global", "ptp", "ipv6-udp"}; !slices.Equal(got, want) {
		t.Errorf("a node hears %s of its neighbour instead of %s", got, want)
	}
}
