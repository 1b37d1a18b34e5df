package network

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/google/nftables"
	"github.com/google/nftables/binaryutil"
	"github.com/google/nftables/expr"
	"golang.org/x/sys/unix"

	"orrery/internal/network/ends"
	"orrery/internal/network/vxlan"
	"orrery/internal/network/wireguard"
	"orrery/internal/site/spec"
)

// An interHostMatch matches packets in which the hosts of a network carry frames to one another (VXLAN, RFC
// 7348). The zero between matches every packet.
type interHostMatch struct {
	number  int        // of the VXLAN, or 0 to match other packets too
	frame   string     // kind of the inner frame, or "" for any
	gateway netip.Addr // gateway in the inner frame
	outer   bool       // only packets that arrive on a link that is not Orrery's, so not from nodes
	user    bool       // only packets sent by users other than root; packets of the kernel have no user
	from    string     // only from one of these hosts, separated by commas, or "" for any
	to      string     // only to one of these hosts, or "" for any
}

// The kinds of frames inside a packet between hosts.
const (
	noARP         = "no ARP"
	arpRequestFor = "asks for" // an ARP request for an address
	arpSenderIs   = "speaks as"
)

// ownLinks begin the names of the host's ends of all links to nodes and routers, and of bridges.
// Routed links begin like bridges. Shorter prefixes would match interfaces such as orange0.
var ownLinks = []string{bridgePrefix, linkPrefix, ends.RouterPrefix}

// Offsets in a packet between hosts, in bytes from the UDP header. The UDP header has 8 bytes, the
// VXLAN header 8 and the frame header 14.
const (
	portOffset      = 2
	numberOffset    = 12
	typeOffset      = 28
	arpSenderOffset = 44 // of ARP, like arpTargetOffset
	arpTargetOffset = 54
)

// words returns the match in the syntax of nft(8).
func (b interHostMatch) words() []string {
	var words []string
	add := func(format string, args ...any) { words = append(words, fmt.Sprintf(format, args...)) }
	if b.user {
		add("meta skuid != 0")
	}
	if b.number != 0 {
		add("udp dport %d @th,%d,24 %d", vxlan.Port, 8*numberOffset, b.number)
	}
	switch b.frame {
	case noARP:
		add("@th,%d,16 != 0x%04x", 8*typeOffset, unix.ETH_P_ARP)
	case arpRequestFor:
		add("@th,%d,16 0x%04x @th,%d,32 0x%x", 8*typeOffset, unix.ETH_P_ARP, 8*arpTargetOffset, b.gateway.AsSlice())
	case arpSenderIs:
		add("@th,%d,16 0x%04x @th,%d,32 0x%x", 8*typeOffset, unix.ETH_P_ARP, 8*arpSenderOffset, b.gateway.AsSlice())
	}
	if b.outer {
		add("iifname != { \"%s*\" }", strings.Join(ownLinks, "*\", \""))
	}
	for _, way := range []struct{ name, hosts string }{{"saddr", b.from}, {"daddr", b.to}} {
		if way.hosts != "" {
			add("%s %s { %s }", familyOf(way.hosts), way.name, way.hosts)
		}
	}
	return words
}

func familyOf(hosts string) string {
	if strings.Contains(hosts, ":") {
		return "ip6"
	}
	return "ip"
}

// exprs returns the match as kernel instructions. set makes a set of hosts and returns the
// instruction that looks an address up in it.
func (b interHostMatch) exprs(set func([]netip.Addr) expr.Any) []expr.Any {
	var all []expr.Any
	compare := func(op expr.CmpOp, offset uint32, data []byte) {
		all = append(all, &expr.Payload{DestRegister: 1, Base: expr.PayloadBaseTransportHeader, Offset: offset,
			Len: uint32(len(data))}, &expr.Cmp{Op: op, Register: 1, Data: data})
	}
	if b.user { // the rule ends here for packets of the kernel
		all = append(all, &expr.Meta{Key: expr.MetaKeySKUID, Register: 1},
			&expr.Cmp{Op: expr.CmpOpNeq, Register: 1, Data: make([]byte, 4)})
	}
	arp := binaryutil.BigEndian.PutUint16(unix.ETH_P_ARP)
	if b.number != 0 {
		all = append(all, protoExprs(unix.IPPROTO_UDP)...)
		compare(expr.CmpOpEq, portOffset, binaryutil.BigEndian.PutUint16(vxlan.Port))
		compare(expr.CmpOpEq, numberOffset, binaryutil.BigEndian.PutUint32(uint32(b.number))[1:])
	}
	switch b.frame {
	case noARP:
		compare(expr.CmpOpNeq, typeOffset, arp)
	case arpRequestFor:
		compare(expr.CmpOpEq, typeOffset, arp)
		compare(expr.CmpOpEq, arpTargetOffset, b.gateway.AsSlice())
	case arpSenderIs:
		compare(expr.CmpOpEq, typeOffset, arp)
		compare(expr.CmpOpEq, arpSenderOffset, b.gateway.AsSlice())
	}
	if b.outer {
		all = append(all, &expr.Meta{Key: expr.MetaKeyIIFNAME, Register: 1})
		for _, prefix := range ownLinks {
			all = append(all, &expr.Cmp{Op: expr.CmpOpNeq, Register: 1, Data: []byte(prefix)})
		}
	}
	if hosts := b.from + b.to; hosts != "" { // all hosts are of one family
		family := byte(unix.NFPROTO_IPV4)
		if familyOf(hosts) == "ip6" {
			family = unix.NFPROTO_IPV6
		}
		all = append(all, familyExprs(family)...)
	}
	all = append(all, hostExprs(b.from, 12, 8, set)...)
	return append(all, hostExprs(b.to, 16, 24, set)...)
}

// hostExprs matches an address of the IP header against some hosts. Its offset depends on the IP
// version.
func hostExprs(hosts string, offset4, offset6 uint32, set func([]netip.Addr) expr.Any) []expr.Any {
	if hosts == "" {
		return nil
	}
	var all []netip.Addr
	for text := range strings.SplitSeq(hosts, ", ") {
		all = append(all, netip.MustParseAddr(text))
	}
	load := &expr.Payload{DestRegister: 1, Base: expr.PayloadBaseNetworkHeader, Offset: offset4, Len: 4}
	if !all[0].Is4() {
		load.Offset, load.Len = offset6, 16
	}
	match := expr.Any(equal(all[0].AsSlice()))
	if len(all) > 1 {
		match = set(all)
	}
	return []expr.Any{load, match}
}

// addHosts adds a set of hosts to a new table and returns the instruction that looks an address up
// in it.
func addHosts(c *nftables.Conn, t *nftables.Table, hosts []netip.Addr) (*expr.Lookup, error) {
	set := &nftables.Set{Table: t, Name: "hosts-" + spec.Digest(hosts)[:8], KeyType: nftables.TypeIPAddr}
	if !hosts[0].Is4() {
		set.KeyType = nftables.TypeIP6Addr
	}
	var elements []nftables.SetElement
	for _, h := range hosts {
		elements = append(elements, nftables.SetElement{Key: h.AsSlice()})
	}
	err := c.AddSet(set, nil)
	for chunk := range slices.Chunk(elements, 256) { // as many as fit into one message
		err = errors.Join(err, c.SetAddElements(set, chunk))
	}
	return &expr.Lookup{SourceRegister: 1, SetName: set.Name, SetID: set.ID}, err
}

// interHostRules are for a network that is on several hosts. They accept the network's packets only
// from its hosts, and neither from nodes nor from users of a host. Each host is the gateway for its
// own nodes, so ARP from or for the gateway must not cross to another host.
//
// The rules come first. Most traffic of nodes between hosts passes here, and need not meet the
// other rules or be tracked. Each connection of a node uses a UDP port of its own here.
func interHostRules(n spec.Network) []rule {
	if n.Uplink.Bridge != "" {
		return bridgedRules(n)
	}
	if n.VXLAN == (spec.VXLAN{}) {
		return nil
	}
	peers, _ := n.VXLAN.ParsePeers() // check has verified that they can be parsed
	var addresses []string
	for _, p := range peers {
		addresses = append(addresses, p.Address.String())
	}
	local, hosts := n.VXLAN.Local, strings.Join(addresses, ", ")
	said := func(chain, why string, what interHostMatch, verdict string) rule {
		what.number = n.VXLAN.ID
		return rule{network: n.Name, chain: chain, why: why, between: what, verdict: verdict}
	}
	gateway, err := netip.ParsePrefix(n.Gateway)
	// The rules at the port of the bridge drop what a router must not send.
	walled := err == nil && gateway.Addr().Is4() && !n.Router
	all := []rule{said(prerouting, "between hosts", interHostMatch{}, untracked)}
	if n.VXLAN.Key != "" {
		clear := said(input, "not encrypted", interHostMatch{}, drop)
		clear.in = linkMatch{name: wireguard.Name(n), not: true}
		sent := said(output, "not encrypted", interHostMatch{}, drop)
		sent.out = clear.in
		all = append(all, clear, sent)
	}
	if hosts != "" {
		// This matches nearly all such packets: they arrive on an interface whose name does not
		// even resemble those of Orrery's own.
		most := said(input, "between hosts", interHostMatch{from: hosts, to: local}, accept)
		most.in = linkMatch{name: ownPrefix, prefix: true, not: true}
		if walled {
			most.between.frame = noARP
			all = append(all, most, said(input, "gateway of another host",
				interHostMatch{frame: arpSenderIs, gateway: gateway.Addr()},
				drop))
		} else {
			all = append(all, most)
		}
		all = append(all,
			said(input, "between hosts", interHostMatch{outer: true, from: hosts, to: local}, accept),
			// The other host would take masqueraded packets for packets of this host.
			said(forward, "past this host", interHostMatch{to: hosts}, drop))
	}
	all = append(all,
		said(input, "from no host of it", interHostMatch{}, drop),
		said(output, "of a user", interHostMatch{user: true}, drop))
	if walled {
		all = append(all,
			said(output, "between hosts", interHostMatch{frame: noARP}, untracked),
			said(output, "asks for the gateway", interHostMatch{frame: arpRequestFor, gateway: gateway.Addr()}, drop),
			said(output, "answers as the gateway", interHostMatch{frame: arpSenderIs, gateway: gateway.Addr()}, drop))
	}
	return append(all, said(output, "between hosts", interHostMatch{}, untracked))
}

// bridgedRules let traffic of a network pass through a bridge of the host unchanged. With
// br_netfilter, the kernel shows this traffic to the host's own rules, which would take it for
// traffic that leaves the network and masquerade it. Packets for the host itself are tracked,
// because rules of the host check whether they are replies.
func bridgedRules(n spec.Network) []rule {
	at := linkMatch{name: n.Uplink.Bridge}
	return []rule{
		{network: n.Name, chain: prerouting, why: "from the network", in: at, source: subnet(n), passing: true,
			verdict: notrack},
		{network: n.Name, chain: prerouting, why: "to the network", in: at, dest: subnet(n), passing: true, verdict: notrack},
	}
}
