package ports

import "orrery/internal/network/vxlan"

// This file defines, as data, what a node may send on its port. Everything else is dropped.
// rules.go compiles it to kernel instructions, and TestFrames sends a frame of each kind.

// The fields of a frame. If a frame lacks the header of a field, it matches no condition on that
// field, not even a negated one. So frames that cannot be parsed are dropped, like everything that
// no rule accepts. For later fragments of a packet, however, some kernels read the payload as if it
// began with the header.
var (
	port           = field{name: "iifname", kind: portName}
	from           = field{name: "ether saddr", kind: inFrame, at: 6, size: 6}
	protocol       = field{name: "ether type", kind: inFrame, at: 12, size: 2} // of a tagged frame, the type of the tag
	arpLayout      = field{name: "@nh,0,48", kind: inPacket, at: 0, size: 6}   // kinds and lengths of the addresses
	arpAsks        = field{name: "arp operation", kind: inPacket, at: 6, size: 2}
	arpMAC         = field{name: "arp saddr ether", kind: inPacket, at: 8, size: 6}
	arpSender      = field{name: "arp saddr ip", kind: inPacket, at: 14, size: 4}
	arpTarget      = field{name: "arp daddr ip", kind: inPacket, at: 24, size: 4}
	ipOffset       = field{name: "ip frag-off", kind: inPacket, at: 6, size: 2, mask: []byte{0x1f, 0xff}}
	ipInner        = field{name: "ip protocol", kind: inPacket, at: 9, size: 1}
	ipFrom         = field{name: "ip saddr", kind: inPacket, at: 12, size: 4}
	ipTo           = field{name: "ip daddr", kind: inPacket, at: 16, size: 4}
	ip6From        = field{name: "ip6 saddr", kind: inPacket, at: 8, size: 16}
	ip6Inner       = field{name: "meta l4proto", kind: innerProtocol} // after all extension headers
	ip6Offset      = field{name: "frag frag-off", kind: inFragment, at: 2, size: 2, mask: []byte{0xff, 0xf8}}
	innerType      = field{name: "@th,0,8", kind: inSegment, at: 0, size: 1}  // of ICMPv6 and IGMP
	fromPort       = field{name: "th sport", kind: inSegment, at: 0, size: 2} // of UDP
	toPort         = field{name: "th dport", kind: inSegment, at: 2, size: 2}
	advertKind     = field{name: "@th,0,8", kind: inSegment, at: 0, size: 1} // of VRRP: version and type
	advertPriority = field{name: "@th,16,8", kind: inSegment, at: 2, size: 1}
	// advertInterval is zero if the interval of advertisements is below 0.32 s. It counts in hundredths.
	advertInterval = field{name: "@th,32,16", kind: inSegment, at: 4, size: 2, mask: []byte{0x0f, 0xe0}}
	ndTarget       = field{name: "@th,64,128", kind: inSegment, at: 8, size: 16} // what a neighbour message is about
)

// Values of the fields.
const (
	typeIPv4 = 0x0800
	typeARP  = 0x0806
	typeIPv6 = 0x86dd

	igmp   = 2
	tcp    = 6
	udp    = 17
	icmpv6 = 58
	pim    = 103
	vrrp   = 112
)

// The sets list for each port what its node may send as. Table fills them.
var (
	held      = set{"held", []field{port}} // ports that are restricted by the other sets
	macs      = set{"macs", []field{port, from}}
	addresses = set{"addresses", []field{port, ipFrom}}
	own       = set{"own", []field{port, from, ipFrom}} // all in one, for the rule that nearly all frames meet
	own6      = set{"own6", []field{port, ip6From}}     // including the link-local address of the MAC
	protocols = set{"protocols", []field{port, protocol}}
	moving    = set{"moving", []field{port, from, ipFrom}} // addresses of services
	movingARP = set{"moving-arp", []field{port, ipFrom}}
	sets      = []set{held, macs, addresses, own, own6, protocols, moving, movingARP}

	// holding has the ports whose nodes have just told the others of a service that they hold it
	// (VRRP, RFC 5798). The rules fill it, and its elements expire.
	holding = set{"holding", []field{port}}
)

const (
	othersChain  = "others"
	routersChain = "routers"
	arpChain     = "arp"
	ipv6Chain    = "six"
	icmpChain    = "icmp"
)

// unspecifiedIPv6 is the unspecified address of IPv6.
var unspecifiedIPv6 = make([]byte, 16)

// chains are the rules of each chain, in order. The first chain sees every frame on every bridge,
// so each rule before "IPv4 of its own" adds cost to all traffic between nodes.
var chains = []chain{
	{prerouting, []rule{
		{"other hosts", when(hasPrefix(port, vxlan.Prefix)), accept},
		{"not IPv4", when(isNot16(protocol, typeIPv4)), goTo + othersChain},
		{"neither TCP nor UDP", when(isNot(ipInner, tcp, udp)), jump + routersChain},
		{"DHCP server", when(is(ipInner, udp), is16(fromPort, 67), is16(ipOffset, 0), in(held, port)), drop},
		{"IPv4 of its own", when(in(own, port, from, ipFrom)), accept},
		{"IPv4 of a service that it holds", when(in(moving, port, from, ipFrom), in(holding, port)), accept},
		{"not held", when(notIn(held, port)), accept},
		{"MAC of another", when(notIn(macs, port, from)), drop},
		{"asks for an address", when(is(ipFrom, 0, 0, 0, 0), is(ipTo, 255, 255, 255, 255),
			is(ipInner, udp), is16(fromPort, 68), is16(toPort, 67)), accept},
		{"IPv4 of another", nil, drop},
	}},
	{routersChain, []rule{
		{"IGMP of a router", when(is(ipInner, igmp), isNot(innerType, 0x12, 0x16, 0x17, 0x22), is16(ipOffset, 0),
			in(held, port)), drop},
		{"PIM", when(is(ipInner, pim), in(held, port)), drop},
		// A node that is frozen, or whose keepalived has died, still has the address: its kernel answers. But
		// it no longer advertises, so its port closes for the address shortly after.
		{"advertises often that it holds a service", when(advertisement(is16(advertInterval, 0))...), extend + "1s"},
		{"advertises that it holds a service", when(advertisement(isNot16(advertInterval, 0))...), extend + "4s"},
	}},
	{othersChain, []rule{
		{"not held", when(notIn(held, port)), accept},
		{"MAC of another", when(notIn(macs, port, from)), drop},
		{"ARP", when(is16(protocol, typeARP)), goTo + arpChain},
		{"IPv6", when(is16(protocol, typeIPv6)), goTo + ipv6Chain},
		{"protocol that the network allows", when(in(protocols, port, protocol)), accept},
		{"another protocol", nil, drop}, // BPDU, LLDP, RARP, EAPOL, VLAN tags, all of IEEE 802.2
	}},
	{arpChain, []rule{
		{"not of Ethernet and IPv4", when(isNotAll(arpLayout, 0, 1, 8, 0, 6, 4)), drop},
		{"neither asks nor answers", when(isNot16(arpAsks, 1, 2)), drop},
		{"ARP with the MAC of another", when(notIn(macs, port, arpMAC)), drop},
		{"ARP of its own", when(in(addresses, port, arpSender)), accept},
		{"ARP of a service that it holds", when(in(movingARP, port, arpSender), in(holding, port)), accept},
		{"looks whether its address is taken", when(is16(arpAsks, 1), is(arpSender, 0, 0, 0, 0),
			in(addresses, port, arpTarget)), accept},
		{"ARP with the IPv4 of another", nil, drop},
	}},
	{ipv6Chain, []rule{
		{"TCP of its own", when(is(ip6Inner, tcp), in(own6, port, ip6From)), accept},
		{"later fragment", when(isNot16(ip6Offset, 0), in(own6, port, ip6From)), accept}, // the first one decides
		{"ICMPv6", when(is(ip6Inner, icmpv6)), goTo + icmpChain},
		{"UDP but of a DHCPv6 server", when(is(ip6Inner, udp), isNot16(fromPort, 547),
			in(own6, port, ip6From)), accept},
		{"others of its own", when(isNot(ip6Inner, udp, pim), in(own6, port, ip6From)), accept},
		{"IPv6 of another", nil, drop},
	}},
	{icmpChain, []rule{
		{"tells who it is", when(is(innerType, 136), in(own6, port, ip6From), in(own6, port, ndTarget)), accept},
		{"asks who another is", when(is(innerType, 135), in(own6, port, ip6From)), accept},
		{"looks whether its address is taken", when(is(innerType, 135), is(ip6From, unspecifiedIPv6...),
			in(own6, port, ndTarget)), accept},
		// Errors, pings, group membership and router solicitations are allowed. Messages of routers
		// (advertisements, redirects, queries) and anything that a later standard adds are not.
		{"word of a router", when(isNot(innerType, 1, 2, 3, 4, 128, 129, 131, 132, 133, 143)), drop},
		{"ICMPv6 of its own", when(in(own6, port, ip6From)), accept},
		{"before it has an address", when(is(ip6From, unspecifiedIPv6...),
			isNot(innerType, 1, 2, 3, 4, 128, 129, 132)), accept},
		{"ICMPv6 of another", nil, drop},
	}},
}
