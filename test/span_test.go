package test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	model "orrery/internal/site"
	"orrery/test/hosts"
	"orrery/test/need"
)

// spanSite is a site with a node on each of some hosts, all on one network of the first host.
func spanSite(name, gateway string, nodes []string, id int) string {
	var b strings.Builder
	fmt.Fprintf(&b, "site.name = %q\nimage.debian.suite = \"bookworm\"\n[network.lan]\nsubnet = \"10.99.243.0/24\"\n%s\n",
		name, gateway)
	for i, node := range nodes {
		address := "local"
		if i > 0 {
			address = hosts.AddressOf(i + 1)
		}
		fmt.Fprintf(&b, "[host.sv%d]\naddress = %q\n[node.%s]\nid = %d\nmemory = \"256MiB\"\nhost = \"sv%d\"\n", i+1,
			address, node, id+i, i+1)
	}
	return b.String()
}

// TestSpan: nodes of one network on several hosts reach one another, and the gateway on their own
// host, whatever happens to other hosts. Nothing else reaches them: no other site with the same
// addresses, no foreign machine beside the hosts, no user of a host, and no node through the hosts'
// own addresses. Between the hosts there is only the network's VXLAN traffic.
//
// Promise (Networks): Into a network on several hosts send only its nodes and root of its hosts.
// Between hosts goes its VXLAN and nothing else of it; changes of its tables are detected. With
// network.TestJoined.
func TestSpan(t *testing.T) {
	need.Integration(t)
	t.Parallel()
	s := newExample(t, "minimal", "it-span", "10.77.1.", "10.99.243.")
	s.do("image", "build") // hosts cannot reach package archives
	const stranger = 4
	h := hosts.Up(t, hosts.Options{Count: stranger, Programs: map[string]string{"orrery": program},
		Store: filepath.Join(need.State(), "store")})
	for i := 2; i <= 3; i++ {
		if err := h.At(i).AddUser("ada", false); err != nil {
			t.Fatal(err)
		}
	}
	write := func(dir, text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(s.dir, "site.toml"), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		s.carry(h.At(1), dir)
	}
	sh := func(on int, script string) string {
		t.Helper()
		out, err := h.At(on).Output("/bin/sh", "-c", "cd /root/span 2>/dev/null; { "+script+"\n} 2>&1")
		if err != nil {
			t.Fatalf("%s: %v\n%s", script, err, out)
		}
		return out
	}
	says := func(on int, script string, words ...string) {
		t.Helper()
		s.wantWords(script, sh(on, script), words...)
	}
	// reached returns which of some addresses nodes reach: "a 12, b 11".
	reached := func(options, from string, attempts int, last ...int) string {
		t.Helper()
		script := fmt.Sprintf("for i in %s; do for n in $(seq %d); do ping -c1 -W1 10.99.243.$i > /dev/null && echo reached $i && break; done; done; true",
			strings.Trim(fmt.Sprint(last), "[]"), attempts)
		var all []string
		for line := range strings.Lines(sh(1, "orrery exec "+options+" "+from+" -- sh -c '"+script+"'")) {
			node, at, several := strings.Cut(strings.TrimSpace(line), " | reached ")
			if !several {
				node = from
				if at, several = strings.CutPrefix(strings.TrimSpace(line), "reached "); !several {
					continue
				}
			}
			all = append(all, node+" "+at)
		}
		slices.Sort(all)
		return strings.Join(all, ", ")
	}
	const tries = 10 // enough for a busy machine

	const gateway = "gateway = \"10.99.243.1\"\nnat = true"
	write("/root/span", spanSite("it-span", gateway, []string{"a", "b"}, 11))
	says(1, "orrery up", "running")
	write("/root/span", spanSite("it-span", gateway, []string{"a", "b", "c"}, 11)) // a host is added
	says(1, "orrery plan || true", "network lan: hosts changed, nodes on other hosts changed")
	says(1, "orrery up", "running")
	says(1, "orrery plan", "nothing to do")
	write("/root/other", spanSite("it-other", "", []string{"x", "y"}, 21))
	says(1, "cd /root/other; orrery up", "running")
	says(1, "orrery exec all -- ip link show eth0", "a | ", "b | ", "c | ", "mtu 1450")
	// Data copied between nodes of other hosts does not pass through the control host.
	says(1, `orrery exec b -- sh -c 'dd if=/dev/urandom of=/root/big bs=1M count=20 2> /dev/null; sha256sum /root/big > /root/sum'
		rx=/sys/class/net/eth0/statistics/rx_bytes; was=$(cat $rx)
		orrery cp b:/root/big b:/root/sum c:/root/ && [ $(($(cat $rx) - was)) -lt 5000000 ] && orrery exec c -- sha256sum -c /root/sum`,
		"/root/big: OK")

	// The packets that a host receives from the switch are counted: VXLAN of the two networks,
	// other VXLAN, and packets with the networks' addresses outside of VXLAN.
	mine, others := model.VNI("it-span", "lan"), model.VNI("it-other", "lan")
	sh(2, fmt.Sprintf(`nft -f - <<'END'
table netdev watch {
	counter mine { }
	counter bare { }
	counter gateway { }
	chain c {
		type filter hook ingress device "eth0" priority 0;
		udp dport 4789 @th,96,24 %[1]d @th,224,16 0x806 @th,432,32 0x0a63f301 counter name gateway
		udp dport 4789 @th,96,24 %[1]d @th,224,16 0x806 @th,352,32 0x0a63f301 counter name gateway
		udp dport 4789 @th,96,24 %[1]d counter name mine return
		udp dport 4789 @th,96,24 != %[2]d counter name bare
		ip daddr 10.99.243.0/24 counter name bare
		ip saddr 10.99.243.0/24 counter name bare
		arp daddr ip 10.99.243.0/24 counter name bare
	}
}
END`, mine, others))
	sh(1, "orrery exec all -- ip neigh flush all")
	const everything = "a 1, a 11, a 12, a 13, b 1, b 11, b 12, b 13, c 1, c 11, c 12, c 13"
	if got := reached("", "all", tries, 1, 11, 12, 13); got != everything {
		t.Errorf("nodes reach %q, not %q", got, everything)
	}
	if out := sh(2, "nft list counter netdev watch mine"); strings.Contains(out, "packets 0 ") {
		t.Errorf("nothing of the network came by the switch: %s", out)
	}
	if out := sh(2, "nft list counter netdev watch bare"); !strings.Contains(out, "packets 0 ") {
		t.Errorf("by the switch came what is no VXLAN of these networks: %s", out)
	}
	if out := sh(2, "nft list counter netdev watch gateway"); !strings.Contains(out, "packets 0 ") {
		t.Errorf("by the switch came ARP for the gateway, or of it: %s", out)
	}
	if got := reached("", "a", 1, 21, 22); got != "" {
		t.Errorf("a site reaches nodes of another: %q", got)
	}
	if got := reached("-C /root/other", "x", tries, 22) + reached("-C /root/other", "x", 1, 12); got != "x 22" {
		t.Errorf("a node of the other site reaches %q", got)
	}

	// A forged ARP message in a VXLAN frame. A node that received it has a neighbour entry.
	remembers := func(from int, as, to string, last int) bool {
		t.Helper()
		frame := fmt.Sprintf("\x08\x00\x00\x00%s\x00\xff\xff\xff\xff\xff\xff\x02\x00\x00\x00\x00%s\x08\x06\x00\x01\x08\x00\x06\x04\x00\x01\x02\x00\x00\x00\x00%s%s\x00\x00\x00\x00\x00\x00%s",
			string([]byte{byte(mine >> 16), byte(mine >> 8), byte(mine)}), string([]byte{byte(last)}),
			string([]byte{byte(last)}), string([]byte{10, 99, 243, byte(last)}), string([]byte{10, 99, 243, 11}))
		var octal strings.Builder
		for _, c := range []byte(frame) {
			fmt.Fprintf(&octal, `\%03o`, c)
		}
		// The frame is written at once, since bash sends output in parts if it prints in parts.
		sh(from, fmt.Sprintf(as, fmt.Sprintf(
			`printf "%s" | dd bs=2000 iflag=fullblock status=none > /dev/udp/%s/4789 || true`, octal.String(), to)))
		time.Sleep(100 * time.Millisecond)
		return strings.Contains(sh(1, "orrery exec a -- ip neigh show 10.99.243."+strconv.Itoa(last)), "lladdr")
	}
	root, user := `bash -c '%s'`, `su ada -s /bin/bash -c '%s'`
	if !remembers(2, root, "10.8.1.1", 101) { // this proves that the frame is valid
		t.Error("root of another host is not heard")
	}
	remembers(2, root, "10.8.1.1", 1)
	if out := sh(1, "orrery exec a -- ip neigh show 10.99.243.1"); strings.Contains(out, "02:00:00:00:00:01") {
		t.Errorf("another host is heard as the gateway: %s", out)
	}
	if remembers(stranger, root, "10.8.1.1", 102) {
		t.Error("a stranger is heard")
	}
	if remembers(2, user, "10.8.1.1", 103) {
		t.Error("a user of another host is heard")
	}
	if remembers(1, `orrery exec b -- bash -c '%s'`, "10.8.1.1", 104) ||
		remembers(1, `orrery exec a -- bash -c '%s'`, "10.8.1.1", 105) {
		t.Error("a node is heard that says it is a host")
	}

	// A wire with a smaller MTU than the interfaces at its ends is detected.
	says(1, "orrery host check || true", "sv3  ", "  fit")
	if err := h.At(3).SetMTU(1400); err != nil {
		t.Fatal(err)
	}
	says(1, "orrery host check || true", "bytes do not arrive at host sv3 (10.8.1.3): network lan sends 1500")
	if err := h.At(3).SetMTU(1500); err != nil {
		t.Fatal(err)
	}

	// Manual changes are seen and repaired.
	sh(2, `dev=$(ip -o link show type vxlan | grep -o 'orx[0-9a-f]*' | head -1); bridge fdb show dev $dev | grep "dst 10.8.1.1 self" | grep -v ^00 | cut -d' ' -f1 | while read mac; do bridge fdb del $mac dev $dev; done`)
	says(1, "orrery plan || true; orrery -C /root/other plan || true", "nodes on other hosts changed")
	sh(3, `nft list tables | grep 'orrery\.' | while read table; do nft delete $table; done`)
	says(1, "orrery plan || true", "rules between hosts changed")
	says(1, "orrery up; orrery -C /root/other up; orrery plan; orrery -C /root/other plan", "it-span: nothing to do",
		"it-other: nothing to do")

	// Without the others, each host is the gateway of its own nodes.
	if err := h.At(1).Disconnect(hosts.Both); err != nil {
		t.Fatal(err)
	}
	sh(1, "orrery exec a --without sv2 --without sv3 -- ip neigh flush all")
	if got := reached("--without sv2 --without sv3", "a", tries, 1); got != "a 1" {
		t.Errorf("a node reaches %q when its host is alone", got)
	}
	if err := h.At(1).Reconnect(); err != nil {
		t.Fatal(err)
	}
	says(1, "for i in $(seq 50); do orrery down && break; sleep 0.2; done; orrery -C /root/other down", "taken down")
	for i := 1; i <= 3; i++ {
		if out := sh(i, "ip -br link | grep -e orb -e orx; nft list tables | grep orrery; ip -br link show type vxlan; true"); out != "" {
			t.Errorf("left on host %d is %q", i, out)
		}
	}
}
