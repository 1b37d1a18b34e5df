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

// between says what of the rest of a match is about packets in which the hosts of a network carry
// frames to one another (VXLAN, RFC 7348); the zero between: nothing.
type between struct {
	number  int        // of the VXLAN; 0: whatever is no such packet, too
	frame   string     // what frame is in it; "": any
	gateway netip.Addr // that the frame is about
	outer   bool       // only what comes in by no link of Orrery's own: what comes from nodes does not come from a host
	user    bool       // only what a user of the host other than root sends: what the kernel sends is of none
	from    string     // only from one of these hosts, separated by commas; "": from anywhere
	to      string     // only to one of these
}

// What frame is in a packet between hosts.
const (
	noARP    = "no ARP"
	asksFor  = "asks for" // by ARP, who has an address
	speaksAs = "speaks as"
)

// ownLinks begin the names of the host's ends of all links to nodes: of bridges, of links to nodes
// and to routers. Routed ones begin as bridges do. An interface of the host may be called orange0.
var ownLinks = []string{bridgePrefix, linkPrefix, ends.RouterPrefix}

// Where something is in a packet between hosts, in bytes from the header of UDP: that has 8, that
// of VXLAN 8, that of the frame 14.
const (
	atPort   = 2
	atNumber = 12
	atType   = 28
	atSender = 44 // of ARP, as atTarget is
	atTarget = 54
)

// words give the match as nft(8) does.
func (b between) words() []string {
	var words []string
	add := func(format string, args ...any) { words = append(words, fmt.Sprintf(format, args...)) }
	if b.user {
		add("meta skuid != 0")
	}
	if b.number != 0 {
		add("udp dport %d @th,%d,24 %d", vxlan.Port, 8*atNumber, b.number)
	}
	switch b.frame {
	case noARP:
		add("@th,%d,16 != 0x%04x", 8*atType, unix.ETH_P_ARP)
	case asksFor:
		add("@th,%d,16 0x%04x @th,%d,32 0x%x", 8*atType, unix.ETH_P_ARP, 8*atTarget, b.gateway.AsSlice())
	case speaksAs:
		add("@th,%d,16 0x%04x @th,%d,32 0x%x", 8*atType, unix.ETH_P_ARP, 8*atSender, b.gateway.AsSlice())
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

// exprs returns the match in the kernel's instructions; set makes a set of hosts, and gives what
// looks them up in it.
func (b between) exprs(set func([]netip.Addr) expr.Any) []expr.Any {
	var all []expr.Any
	compare := func(op expr.CmpOp, offset uint32, data []byte) {
		all = append(all, &expr.Payload{DestRegister: 1, Base: expr.PayloadBaseTransportHeader, Offset: offset,
			Len: uint32(len(data))}, &expr.Cmp{Op: op, Register: 1, Data: data})
	}
	if b.user { // what the kernel sends ends here
		all = append(all, &expr.Meta{Key: expr.MetaKeySKUID, Register: 1},
			&expr.Cmp{Op: expr.CmpOpNeq, Register: 1, Data: make([]byte, 4)})
	}
	arp := binaryutil.BigEndian.PutUint16(unix.ETH_P_ARP)
	if b.number != 0 {
		all = append(all, protoExprs(unix.IPPROTO_UDP)...)
		compare(expr.CmpOpEq, atPort, binaryutil.BigEndian.PutUint16(vxlan.Port))
		compare(expr.CmpOpEq, atNumber, binaryutil.BigEndian.PutUint32(uint32(b.number))[1:])
	}
	switch b.frame {
	case noARP:
		compare(expr.CmpOpNeq, atType, arp)
	case asksFor:
		compare(expr.CmpOpEq, atType, arp)
		compare(expr.CmpOpEq, atTarget, b.gateway.AsSlice())
	case speaksAs:
		compare(expr.CmpOpEq, atType, arp)
		compare(expr.CmpOpEq, atSender, b.gateway.AsSlice())
	}
	if b.outer {
		all = append(all, &expr.Meta{Key: expr.MetaKeyIIFNAME, Register: 1})
		for _, prefix := range ownLinks {
			all = append(all, &expr.Cmp{Op: expr.CmpOpNeq, Register: 1, Data: []byte(prefix)})
		}
	}
	if hosts := b.from + b.to; hosts != "" { // all are of one family
		family := byte(unix.NFPROTO_IPV4)
		if familyOf(hosts) == "ip6" {
			family = unix.NFPROTO_IPV6
		}
		all = append(all, familyExprs(family)...)
	}
	all = append(all, hostExprs(b.from, 12, 8, set)...)
	return append(all, hostExprs(b.to, 16, 24, set)...)
}

// hostExprs matches an address of the header, which is somewhere in that of IPv4 and somewhere else
// in that of IPv6: one of some hosts.
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

// addHosts adds a set of hosts to a table that is made anew, and gives what looks them up in it.
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
	for chunk := range slices.Chunk(elements, 256) { // as many as one message takes
		err = errors.Join(err, c.SetAddElements(set, chunk))
	}
	return &expr.Lookup{SourceRegister: 1, SetName: set.Name, SetID: set.ID}, err
}

// betweenRules are for a network that is on several hosts: what is said to be of it comes from its
// hosts only, and neither from nodes nor from users of a host; and the gateway, which each host is
// for its own nodes, neither asks nor answers on another one. They come first: most that nodes say
// to others passes here, and all of it need not meet the other rules, nor be tracked: each
// connection of a node has a port of its own here.
func betweenRules(n spec.Network) []rule {
	if n.Uplink.Bridge != "" {
		return passedRules(n)
	}
	if n.VXLAN == (spec.VXLAN{}) {
		return nil
	}
	peers, _ := n.VXLAN.ReadPeers() // check has seen that they can be read
	var addresses []string
	for _, p := range peers {
		addresses = append(addresses, p.Address.String())
	}
	local, hosts := n.VXLAN.Local, strings.Join(addresses, ", ")
	said := func(chain, why string, what between, verdict string) rule {
		what.number = n.VXLAN.ID
		return rule{network: n.Name, chain: chain, why: why, between: what, verdict: verdict}
	}
	gateway, err := netip.ParsePrefix(n.Gateway)
	// what a router must not say is for the rules at the port of the bridge
	walled := err == nil && gateway.Addr().Is4() && !n.Router
	all := []rule{said(prerouting, "between hosts", between{}, untracked)}
	if n.VXLAN.Key != "" {
		clear := said(input, "not encrypted", between{}, drop)
		clear.in = linkMatch{name: wireguard.Name(n), not: true}
		sent := said(output, "not encrypted", between{}, drop)
		sent.out = clear.in
		all = append(all, clear, sent)
	}
	if hosts != "" {
		// Nearly all that comes: by an interface whose name is not even like those of Orrery's own.
		most := said(input, "between hosts", between{from: hosts, to: local}, accept)
		most.in = linkMatch{name: ownPrefix, prefix: true, not: true}
		if walled {
			most.between.frame = noARP
			all = append(all, most, said(input, "gateway of another host", between{frame: speaksAs, gateway: gateway.Addr()},
				drop))
		} else {
			all = append(all, most)
		}
		all = append(all,
			said(input, "between hosts", between{outer: true, from: hosts, to: local}, accept),
			// What is masqueraded here would come to the other host from this one.
			said(forward, "past this host", between{to: hosts}, drop))
	}
	all = append(all,
		said(input, "from no host of it", between{}, drop),
		said(output, "of a user", between{user: true}, drop))
	if walled {
		all = append(all,
			said(output, "between hosts", between{frame: noARP}, untracked),
			said(output, "asks for the gateway", between{frame: asksFor, gateway: gateway.Addr()}, drop),
			said(output, "answers as the gateway", between{frame: speaksAs, gateway: gateway.Addr()}, drop))
	}
	return append(all, said(output, "between hosts", between{}, untracked))
}

// passedRules let what is of a network pass by a bridge that the host has as it is: with
// br_netfilter the kernel shows it to the host's own rules, which would take it for what leaves the
// network, and masquerade it. What is for the host itself is tracked, as rules of the host ask
// whether it is an answer.
func passedRules(n spec.Network) []rule {
	at := linkMatch{name: n.Uplink.Bridge}
	return []rule{
		{network: n.Name, chain: prerouting, why: "from the network", in: at, source: subnet(n), passing: true,
			verdict: notrack},
		{network: n.Name, chain: prerouting, why: "to the network", in: at, dest: subnet(n), passing: true, verdict: notrack},
	}
}
