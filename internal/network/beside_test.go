package network

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/vishvananda/netlink"
)

// Rules that docker 28 and ufw 0.36 leave in the tables of iptables-nft: chains with a drop policy.
// Only the NAT rules of docker's own bridge are included, and only the chains of ufw that a node's
// packet passes.
const (
	dockers = `
table ip filter {
	chain DOCKER-USER { }
	chain DOCKER-FORWARD { iifname "docker0" counter accept; }
	chain FORWARD { type filter hook forward priority filter; policy drop; counter jump DOCKER-USER; counter jump DOCKER-FORWARD; }
}
table ip nat {
	chain POSTROUTING { type nat hook postrouting priority srcnat; policy accept; ip saddr 172.17.0.0/16 oifname != "docker0" counter masquerade; }
}`
	ufws = `
table ip filter {
	chain ufw-before-input { iifname "lo" counter accept; ct state related,established counter accept; }
	chain ufw-before-forward { ct state related,established counter accept; }
	chain INPUT { type filter hook input priority filter; policy drop; counter jump ufw-before-input; }
	chain FORWARD { type filter hook forward priority filter; policy drop; counter jump ufw-before-forward; }
}`
)

// TestBesideFirewalls: with docker and ufw, their policy drops packets that leave a network, until
// the rules that `orrery doctor` prints let the bridges through. Where br_netfilter shows them
// traffic within a bridge, they drop that, too. The host always reaches its nodes. Orrery does not
// change their tables, and its own rules still apply.
//
// Promise (Networks): The rules hold beside docker and ufw, whose rules stay as they are.
func TestBesideFirewalls(t *testing.T) {
	if !sandbox(t) {
		return
	}
	setting(t, "net.ipv4.ip_forward", "1")
	makeAll(t, cam, data, closed, toyCam)
	node := func(bridge, link, address, gateway string) *place {
		p := newPlace(t, link, address+"/24", gateway)
		p.join(t, bridge)
		p.do(t, answer)
		return p
	}
	one, two := node(cam.Bridge, "orv1", "10.8.67.11", "10.8.67.1"), node(cam.Bridge, "orv2", "10.8.67.12", "10.8.67.1")
	other := node(data.Bridge, "orv3", "10.8.68.11", "10.8.68.1")
	outside := newPlace(t, "up0", "192.0.2.2/24", "192.0.2.1")
	outside.do(t, answer)
	uplink, err := netlink.LinkByName("up0")
	must(t, err)
	address, err := netlink.ParseAddr("192.0.2.1/24")
	must(t, err)
	must(t, netlink.AddrAdd(uplink, address))

	const seen = "net.bridge.bridge-nf-call-iptables"
	for _, beside := range []struct{ name, rules string }{{"docker", dockers}, {"ufw", ufws}} {
		t.Run(beside.name, func(t *testing.T) {
			nft(t, beside.rules)
			before := nft(t, "list table ip filter")
			makeAll(t, cam, data, closed, toyCam) // again, as by the next up
			if exists("/proc/sys/net/bridge/bridge-nf-call-iptables") {
				setting(t, seen, "1")
				one.misses(t, "10.8.67.12")
				setting(t, seen, "0")
			}
			one.reaches(t, "10.8.67.12", "10.8.67.11")
			two.reaches(t, "10.8.67.11", "10.8.67.12")
			if _, err := call("10.8.67.11", timeout); err != nil {
				t.Errorf("from the host: %v", err)
			}
			one.misses(t, "192.0.2.2")
			other.misses(t, "192.0.2.2", "10.8.67.11")
			outside.misses(t, "10.8.67.11")
			if after := nft(t, "list table ip filter"); uncounted(after) != uncounted(before) {
				t.Errorf("their table was\n%s\nand is\n%s", before, after)
			}
			nft(t, `insert rule ip filter FORWARD iifname "orb*" accept`) // as doctor suggests
			nft(t, `insert rule ip filter FORWARD oifname "orb*" accept`)
			if exists("/proc/sys/net/bridge/bridge-nf-call-iptables") {
				setting(t, seen, "1")
				defer setting(t, seen, "0")
			}
			one.reaches(t, "10.8.67.12", "10.8.67.11")
			one.reaches(t, "192.0.2.2", "192.0.2.1")
			other.misses(t, "192.0.2.2", "10.8.67.11")
			outside.misses(t, "10.8.67.11")
			nft(t, "flush ruleset ip")
		})
	}
}

// nft runs a command of nft(8), or several lines as a file, and returns the output.
func nft(t *testing.T, text string) string {
	t.Helper()
	cmd := exec.Command("nft", "-f", "-")
	cmd.Stdin = strings.NewReader(text + "\n")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("nft: %v\n%s\n%s", err, text, out)
	}
	return string(out)
}

// uncounted returns rules without their counters.
func uncounted(rules string) string {
	var words []string
	for _, word := range strings.Fields(rules) {
		if strings.Trim(word, "0123456789") != "" {
			words = append(words, word)
		}
	}
	return strings.Join(words, " ")
}
