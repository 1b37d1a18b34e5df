package test

import (
	"fmt"
	"net"
	"testing"
)

// wireSite has a macvlan and an exclusive network at the two ends of a veth pair, and no other path
// to its nodes.
const wireSite = `
[vethpair.itwire]
ends = ["itw0", "itw1"]
[network.air]
kind = "macvlan"
interface = "itw0"
subnet = "10.99.124.0/24"
[network.own]
kind = "exclusive"
subnet = "10.99.125.0/24"
[image.debian]
suite = "bookworm"
[node."sly{0..1}"]
id = 10
net = { air = "auto" }
[node.alone]
id = 20
net = { own = "10.99.125.20" }
interface = { own = "itw1" }
`

// TestWire: on networks that bypass the host, a node reaches no service of the host and no
// interface except its own. Whatever the node does to its interface, the interface is found again,
// and the node is restarted and destroyed.
func TestWire(t *testing.T) {
	t.Parallel()
	s := newSite(t, "it-wire", wireSite, nil)
	s.do("up")
	sshd, err := net.Listen("tcp", ":0")
	if err != nil {
		t.Fatal(err)
	}
	defer sshd.Close()
	port := sshd.Addr().(*net.TCPAddr).Port
	for _, node := range []string{"sly0", "alone"} {
		s.run("shell", node, "--", "/bin/sh", "-c", "ip link set eth0 promisc on; ip route add default dev eth0; true").
			want(0)
		for _, address := range []string{s.world(), "127.0.0.1", "10.99.124.1"} {
			if s.run("shell", node, "--", "timeout", "1", "bash", "-c",
				fmt.Sprintf("exec 3<>/dev/tcp/%s/%d", address, port)).status == 0 {
				t.Errorf("%s reaches a service of the host at %s", node, address)
			}
		}
	}
	s.run("shell", "sly0", "--", "ping", "-c", "1", "-W", "2", "10.99.124.11").want(0)
	for node, does := range map[string]string{
		"sly0":  "ip link set eth0 down; ip link set eth0 address 02:00:00:00:00:99; ip link set eth0 name docker0",
		"sly1":  "ip link delete eth0",
		"alone": "ip link add link eth0 name eth0.7 type vlan id 7; ip link set eth0 down; ip link set eth0 name itw0; ip link add bond0 type bond; ip link set itw0 master bond0; ip link set itw0 alias 'orrery it-wire air itw0'",
	} {
		s.run("shell", node, "--", "/bin/sh", "-c", does+"; true").want(0)
	}
	for _, node := range []string{"sly0", "sly1", "alone"} {
		s.do("stop", node)
		s.do("up")
	}
	s.run("shell", "sly0", "--", "ping", "-c", "1", "-W", "2", "10.99.124.11").want(0)
	s.run("shell", "alone", "--", "ip", "address", "show", "eth0").want(0, "10.99.125.20")
	// The node marks its interface as one of the host's and is then destroyed. The host is
	// unchanged.
	s.run("shell", "alone", "--", "ip", "link", "set", "eth0", "alias", "orrery passthrough it-wire/10 lo up", "address",
		"02:00:00:00:00:99").want(0)
	s.run("shell", "alone", "--", "poweroff", "-ff")
	s.do("up")
	s.settled()
}
