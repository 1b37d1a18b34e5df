package network

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/nftables/expr"
	"golang.org/x/sys/unix"

	"orrery/internal/network/vxlan"
	"orrery/internal/network/wireguard"
	"orrery/internal/site"
	"orrery/internal/site/spec"
	"orrery/test/nftest"
)

// inMemory returns the table of rules for package nftest.
func inMemory(all []rule) *nftest.Table {
	t := &nftest.Table{Chains: map[string][][]expr.Any{}, Sets: map[string]map[string]bool{}}
	set := func(hosts []netip.Addr) expr.Any {
		name, keys := fmt.Sprint(hosts), map[string]bool{}
		for _, h := range hosts {
			keys[string(h.AsSlice())] = true
		}
		t.Sets[name] = keys
		return &expr.Lookup{SourceRegister: 1, SetName: name}
	}
	for _, r := range all {
		t.Chains[r.chain] = append(t.Chains[r.chain], r.exprs(set))
	}
	return t
}

// A packet is a packet that a host receives, forwards or sends.
type packet struct {
	what string
	way  string // "IN OUT FROM TO PROTOCOL/PORT" and words; "host" as a link is the host itself
	want string // drop, pass, untracked or masquerade
	body []byte // data after the UDP header
}

// wireFrame returns a packet in a frame. The port is the destination port or, for ICMP, the message
// type.
func wireFrame(from, to netip.Addr, protocol string, port uint16, body []byte) []byte {
	number := map[string]byte{"icmp": unix.IPPROTO_ICMP, "udp": unix.IPPROTO_UDP, "tcp": unix.IPPROTO_TCP}[protocol]
	b := make([]byte, 14)
	if from.Is4() {
		binary.BigEndian.PutUint16(b[12:], unix.ETH_P_IP)
		b = append(b, 0x45, 0, 0, 0, 0, 0, 0, 0, 64, number, 0, 0)
	} else {
		binary.BigEndian.PutUint16(b[12:], unix.ETH_P_IPV6)
		b = append(b, 0x60, 0, 0, 0, 0, 0, number, 64)
	}
	b = append(append(b, from.AsSlice()...), to.AsSlice()...)
	if protocol == "icmp" {
		return append(b, byte(port), 0, 0, 0, 0, 0, 0, 0)
	}
	b = binary.BigEndian.AppendUint16(b, 40000)
	b = binary.BigEndian.AppendUint16(b, port)
	return append(append(b, 0, 0, 0, 0), body...)
}

// seen returns what rules see of a packet. Words after its way add properties: its connection is
// "established", the number of connections is at the limit ("full") or above it ("over"), it
// arrived on another link than that to its source ("astray"), a "user" sends it, or it has the mark
// of a network ("marked").
func (p packet) seen(links map[string]string) *nftest.Packet {
	words := strings.Fields(p.way)
	protocol, number, _ := strings.Cut(words[4], "/")
	port, err := strconv.ParseUint(number, 10, 16)
	if err != nil {
		panic(err)
	}
	link := func(name string) string { return cmp.Or(links[name], strings.TrimSuffix(name, "host")) }
	of := func(word string) bool { return slices.Contains(words[5:], word) }
	s := &nftest.Packet{
		In: link(words[0]), Out: link(words[1]), Local: words[1] == "host", WayBack: 7, Established: of("established"),
		Translated: of("translated"),
		Frame:      wireFrame(netip.MustParseAddr(words[2]), netip.MustParseAddr(words[3]), protocol, uint16(port), p.body),
	}
	if words[0] == "lo" {
		s.InIndex = 1
	}
	if of("astray") {
		s.WayBack = 0
	}
	if words[0] == "host" {
		user := uint32(0)
		if of("user") {
			user = 1000
		}
		s.User = &user
	}
	if of("marked") {
		s.Mark = vxlan.Mark(onMany())
	}
	if of("full") || of("over") {
		s.Connections = maxConnections
	}
	if of("over") {
		s.Connections++
	}
	return s
}

// fate sends a packet through all chains that it meets, and returns the result.
func fate(t *nftest.Table, p *nftest.Packet) string {
	way := []string{prerouting, forward, postrouting}
	switch {
	case p.Out == "":
		way = []string{prerouting, input}
	case p.In == "":
		way = []string{output, postrouting}
	}
	fate := "pass"
	for _, chain := range way {
		f := t.Run(chain, p)
		switch {
		case f.Verdict == "drop":
			return "drop"
		case f.Masquerade:
			fate = "masquerade"
		case f.Untracked:
			fate = "untracked"
		}
	}
	return fate
}

// send sends packets through rules and compares the results. The packets may use other names for
// links.
func send(t *testing.T, rules []rule, links map[string]string, packets []packet) {
	t.Helper()
	table := inMemory(rules)
	for _, p := range packets {
		if got := fate(table, p.seen(links)); got != p.want {
			t.Errorf("%s: %s, want %s", p.what, got, p.want)
		}
	}
}

// TestPacketsInMemory sends packets through the rules of a site, on any machine. Tests in sandboxes
// check that the kernel does the same.
func TestPacketsInMemory(t *testing.T) {
	links := map[string]string{"cam": cam.Bridge, "data": data.Bridge, "closed": closed.Bridge}
	send(t, rules([]spec.Network{cam, data, closed}), links, []packet{
		{"out", "cam eth0 10.8.67.9 192.0.2.1 tcp/80", "masquerade", nil},
		{"out, the last that is allowed", "cam eth0 10.8.67.9 192.0.2.1 tcp/80 full", "masquerade", nil},
		{"out, one more", "cam eth0 10.8.67.9 192.0.2.1 tcp/80 over", "drop", nil},
		{"out, of a connection among many", "cam eth0 10.8.67.9 192.0.2.1 tcp/80 over established", "masquerade", nil},
		{"out, forged", "cam eth0 10.8.66.255 192.0.2.1 tcp/80", "drop", nil},
		{"out, forged, next subnet", "cam eth0 10.8.68.0 192.0.2.1 tcp/80", "drop", nil},
		{"out, over IPv6", "cam eth0 2001:db8::1 2001:db8:1::1 tcp/80", "drop", nil},
		{"out without nat", "data eth0 10.8.68.9 192.0.2.1 tcp/80", "drop", nil},
		{"out without a gateway", "closed eth0 10.8.69.9 192.0.2.1 tcp/80", "drop", nil},
		{"to where clouds tell of themselves", "cam eth0 10.8.67.9 169.254.169.254 tcp/80", "drop", nil},
		{"in, new", "eth0 cam 192.0.2.1 10.8.67.9 tcp/80", "drop", nil},
		{"in, an answer", "eth0 cam 192.0.2.1 10.8.67.9 tcp/40000 established", "pass", nil},
		{"in without nat, an answer", "eth0 data 192.0.2.1 10.8.68.9 tcp/40000 established", "drop", nil},
		{"to another network", "cam data 10.8.67.9 10.8.68.9 tcp/80", "drop", nil},
		{"to another network, an answer", "cam data 10.8.67.9 10.8.68.9 tcp/80 established", "drop", nil},
		{"for a network whose bridge is not up", "cam eth0 10.8.67.9 10.8.69.9 tcp/80", "drop", nil},
		{"within, as br_netfilter shows it", "cam cam 10.8.67.9 10.8.67.10 tcp/80", "untracked", nil},
		{"within, as br_netfilter shows it, unseen", "closed closed 10.8.69.9 10.8.69.10 tcp/80", "untracked", nil},
		{"to the gateway: ping", "cam host 10.8.67.9 10.8.67.1 icmp/8", "untracked", nil},
		{"to the gateway: what is no question", "cam host 10.8.67.9 10.8.67.1 icmp/0", "drop", nil},
		{"to the gateway: an answer", "data host 10.8.68.9 10.8.68.1 tcp/80 established", "pass", nil},
		{"to the gateway: what is open", "data host 10.8.68.9 10.8.68.1 tcp/7", "pass", nil},
		{"to the gateway: one connection too many", "data host 10.8.68.9 10.8.68.1 tcp/7 over", "drop", nil},
		{"to the gateway: the port below", "data host 10.8.68.9 10.8.68.1 tcp/6", "drop", nil},
		{"to the gateway: the port above", "data host 10.8.68.9 10.8.68.1 tcp/8", "drop", nil},
		{"to the gateway: another protocol", "data host 10.8.68.9 10.8.68.1 udp/7", "drop", nil},
		{"to the gateway of another network: ping", "data host 10.8.68.9 10.8.67.1 icmp/8", "drop", nil},
		{"to the gateway of another network: what is open", "cam host 10.8.67.9 10.8.68.1 tcp/7", "drop", nil},
		{"to an outer address: what is open", "cam host 10.8.67.9 192.0.2.99 tcp/7", "pass", nil},
		{"to an outer address: one connection too many", "cam host 10.8.67.9 192.0.2.99 tcp/7 over", "drop", nil},
		{"to an outer address: ping", "cam host 10.8.67.9 192.0.2.99 icmp/8", "pass", nil},
		{"to an outer address: one ping too many", "cam host 10.8.67.9 192.0.2.99 icmp/8 over", "drop", nil},
		{"to an outer address: an answer", "cam host 10.8.67.9 192.0.2.99 tcp/9 established", "pass", nil},
		{"to an outer address without nat: what is open", "data host 10.8.68.9 192.0.2.99 tcp/7", "drop", nil},
		{"to the host, without a gateway", "closed host 10.8.69.9 192.0.2.99 tcp/7", "drop", nil},
		{"asks for an address", "cam host 0.0.0.0 255.255.255.255 udp/67", "drop", nil},
		{"asks for an address, as br_netfilter shows it", "cam cam 0.0.0.0 255.255.255.255 udp/67", "untracked", nil},
		{"asks nobody", "cam cam 0.0.0.0 255.255.255.255 udp/68", "drop", nil},
		{"of no business of ours", "eth0 host 10.8.67.9 10.8.67.1 tcp/22", "pass", nil},
		{"of no business of ours, passed on", "eth0 eth1 192.0.2.1 198.51.100.1 tcp/22", "pass", nil},
		{"of the host to itself", "lo host 10.8.67.1 10.8.67.1 tcp/22", "pass", nil},
		{"of the host to itself, as it leaves", "host lo 10.8.67.1 10.8.67.1 tcp/22", "pass", nil},
		{"of the host to the outside, with a network's address", "host eth0 10.8.67.1 192.0.2.1 tcp/22", "masquerade", nil},
		{"of the host to the world", "host eth0 192.0.2.99 192.0.2.1 tcp/22", "pass", nil},
	})

	told := cam
	told.Metadata, told.Spoof, told.Host = true, true, "tcp/20-22"
	send(t, rules([]spec.Network{told}), links, []packet{
		{"to where clouds tell of themselves, if that is wanted", "cam eth0 10.8.67.9 169.254.169.254 tcp/80", "masquerade",
			nil},
		{"within, with spoof, as br_netfilter shows it", "cam cam 192.0.2.1 192.0.2.2 tcp/80", "untracked", nil},
		{"out, forged, with spoof", "cam eth0 192.0.2.1 192.0.2.2 tcp/80", "drop", nil},
		{"below a range", "cam host 10.8.67.9 10.8.67.1 tcp/19", "drop", nil},
		{"first of a range", "cam host 10.8.67.9 10.8.67.1 tcp/20", "pass", nil},
		{"last of a range", "cam host 10.8.67.9 10.8.67.1 tcp/22", "pass", nil},
		{"above a range", "cam host 10.8.67.9 10.8.67.1 tcp/23", "drop", nil},
	})
}

// TestRoutedPacketsInMemory: a routed network has a link for each node.
func TestRoutedPacketsInMemory(t *testing.T) {
	links := map[string]string{
		"a": site.RoutedName("karoo", "karoo", "a", "venet"), "b": site.RoutedName("karoo", "karoo", "b", "venet"),
		"other": site.RoutedName("karoo", "karoo", "c", "quiet"),
	}
	send(t, rules([]spec.Network{venet, quiet}), links, []packet{
		{"out", "a eth0 10.8.71.9 192.0.2.1 tcp/80", "masquerade", nil},
		{"with the address of another node", "a eth0 10.8.71.10 192.0.2.1 tcp/80 astray", "drop", nil},
		{"within", "a b 10.8.71.9 10.8.71.10 tcp/80", "untracked", nil},
		{"to another network", "a other 10.8.71.9 10.8.72.9 tcp/80", "drop", nil},
		{"out without nat", "other eth0 10.8.72.9 192.0.2.1 tcp/80", "drop", nil},
		{"to the gateway: ping", "a host 10.8.71.9 10.8.71.1 icmp/8", "untracked", nil},
	})
}

// TestRouterPacketsInMemory: a twin's network reaches the outside through its router, but neither
// the host nor other networks.
func TestRouterPacketsInMemory(t *testing.T) {
	n := routerOf("dev1", cam)
	links := map[string]string{"up": uplinkName(n), "other": uplinkName(routerOf("dev2", cam)), "cam": cam.Bridge}
	send(t, rules([]spec.Network{n}), links, []packet{
		{"out", "up eth0 169.254.0.2 192.0.2.1 tcp/80", "masquerade", nil},
		{"out, one connection too many", "up eth0 169.254.0.2 192.0.2.1 tcp/80 over", "drop", nil},
		{"out, not masqueraded by the router", "up eth0 10.8.67.9 192.0.2.1 tcp/80", "drop", nil},
		{"to where clouds tell of themselves", "up eth0 169.254.0.2 169.254.169.254 tcp/80", "drop", nil},
		{"to the original", "up cam 169.254.0.2 10.8.67.9 tcp/80", "drop", nil},
		{"to another router", "up other 169.254.0.2 169.254.0.4 tcp/80", "drop", nil},
		{"in, an answer", "eth0 up 192.0.2.1 169.254.0.2 tcp/80 established", "pass", nil},
		{"in, new", "eth0 up 192.0.2.1 169.254.0.2 tcp/80", "drop", nil},
		{"to the host", "up host 169.254.0.2 192.0.2.99 tcp/22", "drop", nil},
	})
	send(t, routerRules(n), links, []packet{
		{"inside: out", "gate exit 10.8.67.9 192.0.2.1 tcp/80", "masquerade", nil},
		{"inside: out, one connection too many", "gate exit 10.8.67.9 192.0.2.1 tcp/80 over", "drop", nil},
		{"inside: out, forged", "gate exit 10.8.68.9 192.0.2.1 tcp/80", "drop", nil},
		{"inside: in, an answer", "exit gate 192.0.2.1 10.8.67.9 tcp/80 established", "pass", nil},
		{"inside: in, new", "exit gate 192.0.2.1 10.8.67.9 tcp/80", "drop", nil},
		{"inside: ping", "gate host 10.8.67.9 10.8.67.1 icmp/8", "untracked", nil},
		{"inside: to the router", "gate host 10.8.67.9 10.8.67.1 tcp/22", "drop", nil},
		{"inside: answer to the router", "exit host 192.0.2.1 169.254.0.2 udp/40000 established", "pass", nil},
		{"inside: from the world to the router", "exit host 192.0.2.1 169.254.0.2 udp/53", "drop", nil},
	})
}

// carried returns the data after the UDP header of a frame between hosts: an ARP message, or
// another one.
func carried(number int, kind uint16, sender, target string) []byte {
	b := make([]byte, 8+14+28)
	binary.BigEndian.PutUint32(b[4:], uint32(number)<<8)
	binary.BigEndian.PutUint16(b[20:], kind)
	copy(b[36:], netip.MustParseAddr(sender).AsSlice())
	copy(b[46:], netip.MustParseAddr(target).AsSlice())
	return b
}

// TestPacketsBetweenHostsInMemory: packets of a network on several hosts are accepted only from
// these hosts, and not from nodes and users.
func TestPacketsBetweenHostsInMemory(t *testing.T) {
	n := onMany()
	ip := carried(n.VXLAN.ID, unix.ETH_P_IP, "10.99.1.9", "10.99.1.1")
	other := carried(n.VXLAN.ID+1, unix.ETH_P_IP, "10.99.1.9", "10.99.1.10")
	question := carried(n.VXLAN.ID, unix.ETH_P_ARP, "10.99.1.9", "10.99.1.10")
	gatewayAsked := carried(n.VXLAN.ID, unix.ETH_P_ARP, "10.99.1.9", "10.99.1.1")
	gatewaySays := carried(n.VXLAN.ID, unix.ETH_P_ARP, "10.99.1.1", "10.99.1.9")
	links := map[string]string{"lan": n.Bridge, "key": wireguard.Name(n)}
	send(t, rules([]spec.Network{n}), links, []packet{
		{"from a host", "eth0 host 10.8.1.2 10.8.1.1 udp/4789", "untracked", ip},
		{"from the other host", "eth0 host 10.8.1.3 10.8.1.1 udp/4789", "untracked", ip},
		{"by an interface with a name like ours", "orange0 host 10.8.1.2 10.8.1.1 udp/4789", "untracked", ip},
		{"from no host of it", "eth0 host 10.8.1.4 10.8.1.1 udp/4789", "drop", ip},
		{"to another address", "eth0 host 10.8.1.2 10.8.1.9 udp/4789", "drop", ip},
		{"to another port", "eth0 host 10.8.1.9 10.8.1.1 udp/4790", "pass", ip},
		{"from a node", "lan host 10.8.1.2 10.8.1.1 udp/4789", "drop", ip},
		{"of another network", "eth0 host 10.8.1.4 10.8.1.1 udp/4789", "pass", other},
		{"ARP", "eth0 host 10.8.1.2 10.8.1.1 udp/4789", "untracked", question},
		{"as the gateway", "eth0 host 10.8.1.2 10.8.1.1 udp/4789", "drop", gatewaySays},
		{"passed on", "lan eth0 10.99.1.9 10.8.1.2 udp/4789", "drop", ip},
		{"to a host", "host eth0 10.8.1.1 10.8.1.2 udp/4789", "untracked", ip},
		{"of a user", "host eth0 10.8.1.1 10.8.1.2 udp/4789 user", "drop", ip},
		{"ARP to a host", "host eth0 10.8.1.1 10.8.1.2 udp/4789", "untracked", question},
		{"for the gateway to a host", "host eth0 10.8.1.1 10.8.1.2 udp/4789", "drop", gatewayAsked},
		{"as the gateway to a host", "host eth0 10.8.1.1 10.8.1.2 udp/4789", "drop", gatewaySays},
	})
	n.VXLAN.Key = "a key"
	send(t, rules([]spec.Network{n}), links, []packet{
		{"not encrypted", "eth0 host 10.8.1.2 10.8.1.1 udp/4789", "drop", ip},
		{"to a host, not encrypted", "host eth0 10.8.1.1 10.8.1.2 udp/4789", "drop", ip},
		{"encrypted", "key host 10.8.1.2 10.8.1.1 udp/4789", "untracked", ip},
		{"to a host, encrypted", "host key 10.8.1.1 10.8.1.2 udp/4789", "untracked", ip},
	})
	n.VXLAN = spec.VXLAN{ID: n.VXLAN.ID, Local: "2001:db8::1", Peers: "2001:db8::2;2001:db8::3"}
	send(t, rules([]spec.Network{n}), links, []packet{
		{"from a host over IPv6", "eth0 host 2001:db8::3 2001:db8::1 udp/4789", "untracked", ip},
		{"from no host of it over IPv6", "eth0 host 2001:db8::4 2001:db8::1 udp/4789", "drop", ip},
		{"to another address over IPv6", "eth0 host 2001:db8::3 2001:db8::9 udp/4789", "drop", ip},
	})
}

// TestPacketsOfTheWireInMemory: nodes of a network on a bridge of the host reach the opened ports
// of the host.
func TestPacketsOfTheWireInMemory(t *testing.T) {
	n := onMany()
	n.VXLAN, n.Uplink, n.Gateway, n.NAT, n.Host = spec.VXLAN{}, spec.Uplink{Bridge: "br0"}, "", false, "tcp/22"
	send(t, rules([]spec.Network{n}), nil, []packet{
		{"what is open", "br0 host 10.99.1.9 10.99.1.99 tcp/22 marked", "pass", nil},
		{"what is not", "br0 host 10.99.1.9 10.99.1.99 tcp/23 marked", "drop", nil},
		{"one connection too many", "br0 host 10.99.1.9 10.99.1.99 tcp/22 over marked", "drop", nil},
		{"ping", "br0 host 10.99.1.9 10.99.1.99 icmp/8 marked", "pass", nil},
		{"an answer", "br0 host 10.99.1.9 10.99.1.99 tcp/40000 established marked", "pass", nil},
		{"with an address of another network", "br0 host 10.99.2.9 10.99.1.99 tcp/22 marked", "drop", nil},
		{"passed on", "br0 eth0 10.99.1.9 192.0.2.1 tcp/22 marked", "drop", nil},
		{"not of a node", "br0 host 10.99.1.50 10.99.1.99 tcp/23", "pass", nil},
		{"past the host", "br0 br0 10.99.1.9 192.0.2.1 tcp/22", "untracked", nil},
		{"past the host, to the network", "br0 br0 192.0.2.1 10.99.1.9 tcp/22", "untracked", nil},
		{"past the host, of others", "br0 br0 192.0.2.1 192.0.2.2 tcp/22", "pass", nil},
	})
}
