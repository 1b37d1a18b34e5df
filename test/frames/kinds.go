package frames

import (
	"net"
	"net/netip"
	"slices"
)

// All returns all kinds. The only IPv6 address of a node is the link-local one derived from its
// MAC.
func All() []Kind {
	return slices.Concat(fourKinds(), resolutionKinds(), sixKinds(), icmpKinds(), oddKinds())
}

var (
	broadcast = netip.AddrFrom4([4]byte{255, 255, 255, 255})
	nobody4   = netip.IPv4Unspecified()
	global    = netip.MustParseAddr("2001:db8::9")
	foreign   = net.HardwareAddr{2, 0, 0, 0, 0, 9} // of no node
)

func fourKinds() []Kind {
	// send makes a frame to the other node.
	send := func(proto byte, payload []byte) maker {
		return func(me, other Party) []byte {
			return ethernet(other.MAC, me.MAC, typeIPv4, ipv4(me.IPv4, other.IPv4, proto, 0, payload))
		}
	}
	// shout makes a UDP broadcast from an address, or from that of me for the zero Addr.
	shout := func(from netip.Addr, payload []byte) maker {
		return func(me, _ Party) []byte {
			address := from
			if !from.IsValid() {
				address = me.IPv4
			}
			return ethernet(everybody, me.MAC, typeIPv4, ipv4(address, broadcast, udp, 0, payload))
		}
	}
	toGroup := func(proto byte, payload ...byte) maker {
		return func(me, _ Party) []byte {
			all := netip.AddrFrom4([4]byte{224, 0, 0, 1})
			return ethernet(net.HardwareAddr{1, 0, 0x5e, 0, 0, 1}, me.MAC, typeIPv4, ipv4(me.IPv4, all, proto, 0, payload))
		}
	}
	// with makes a packet of me with another source MAC, or to another destination MAC.
	with := func(from, to net.HardwareAddr) maker {
		return func(me, other Party) []byte {
			mac, next := from, to
			if mac == nil {
				mac = me.MAC
			}
			if next == nil {
				next = other.MAC
			}
			return ethernet(next, mac, typeIPv4, ipv4(me.IPv4, other.IPv4, tcp, 0, segment()))
		}
	}
	var mine netip.Addr
	return []Kind{
		{"ipv4-udp", true, send(udp, datagram(9, 9))},
		{"ipv4-tcp", true, send(tcp, segment())},
		{"ipv4-broadcast", true, shout(mine, datagram(9, 9))},
		{"ipv4-later-fragment", true, func(me, other Party) []byte {
			return ethernet(other.MAC, me.MAC, typeIPv4, ipv4(me.IPv4, other.IPv4, udp, 3, datagram(67, 68)))
		}},
		{"dhcp-question", true, shout(nobody4, datagram(68, 67))},
		{"ipv4-to-bridges", true, with(nil, bridges)}, // only blocked on the way to a wire: it is harmless to a node
		{"dhcp-renewal", true, send(udp, datagram(68, 67))},
		{"igmp-report", true, toGroup(igmp, 0x16, 0, 0, 0, 239, 1, 2, 3)},
		{"igmp-report-3", true, toGroup(igmp, 0x22, 0, 0, 0, 0, 0, 0, 0)},
		{"igmp-leave", true, toGroup(igmp, 0x17, 0, 0, 0, 239, 1, 2, 3)},

		{"ipv4-of-another", false, func(me, other Party) []byte {
			return ethernet(everybody, me.MAC, typeIPv4, ipv4(other.IPv4, broadcast, udp, 0, datagram(9, 9)))
		}},
		{"ipv4-of-nobody", false, shout(nobody4, datagram(9, 9))},
		{"mac-of-another", false, func(me, other Party) []byte {
			return ethernet(everybody, other.MAC, typeIPv4, ipv4(me.IPv4, broadcast, udp, 0, datagram(9, 9)))
		}},
		{"mac-of-nobody", false, with(foreign, nil)},
		{"dhcp-answer", false, shout(mine, datagram(67, 68))},
		{"dhcp-answer-to-one", false, send(udp, datagram(67, 68))},
		{"dhcp-answer-in-a-fragment", false, func(me, _ Party) []byte {
			return ethernet(everybody, me.MAC, typeIPv4, ipv4(me.IPv4, broadcast, udp, 0x2000, datagram(67, 68)))
		}},
		{"igmp-query", false, toGroup(igmp, 0x11, 0, 0, 0, 0, 0, 0, 0)},
		{"igmp-router", false, toGroup(igmp, 0x30, 0, 0, 0)},
		{"pim-hello", false, toGroup(pim, 0x20, 0, 0, 0)},
	}
}

func resolutionKinds() []Kind {
	// say makes a broadcast ARP message with a sender MAC, a sender address and a target.
	say := func(op byte, build func(me, other Party) (tells, target Party)) maker {
		return func(me, other Party) []byte {
			tells, target := build(me, other)
			return ethernet(everybody, me.MAC, typeARP, arp(op, tells.MAC, tells.IPv4, target.IPv4))
		}
	}
	const request, reply, reverse = 1, 2, 3
	own := func(me, other Party) (Party, Party) { return me, other }
	self := func(me, _ Party) (Party, Party) { return me, me }
	probe := func(me, _ Party) (Party, Party) { return Party{me.MAC, nobody4}, me }
	foreignProbe := func(me, other Party) (Party, Party) { return Party{me.MAC, nobody4}, other }
	stolen := func(me, other Party) (Party, Party) { return Party{me.MAC, other.IPv4}, me }
	led := func(me, other Party) (Party, Party) { return Party{other.MAC, me.IPv4}, other }
	return []Kind{
		{"arp-request", true, say(request, own)},
		{"arp-reply", true, say(reply, own)},
		{"arp-probe", true, say(request, probe)},
		{"arp-announcement", true, say(request, self)},

		{"arp-request-as-another", false, say(request, stolen)},
		{"arp-reply-as-another", false, say(reply, stolen)},
		{"arp-with-mac-of-another", false, say(reply, led)},
		{"arp-reply-from-nobody", false, say(reply, probe)},
		{"arp-probe-for-another", false, say(request, foreignProbe)},
		{"arp-reverse", false, say(reverse, own)},
		{"arp-of-other-lengths", false, func(me, other Party) []byte {
			b := arp(reply, me.MAC, me.IPv4, other.IPv4)
			b[4] = 8 // length of a MAC
			return ethernet(everybody, me.MAC, typeARP, b)
		}},
	}
}

// A whose returns an IPv6 address.
type whose func(me, other Party) netip.Addr

func own(me, _ Party) netip.Addr        { return me.LinkLocal() }
func another(_, other Party) netip.Addr { return other.LinkLocal() }
func unknown(_, _ Party) netip.Addr     { return unspecified }

func sixKinds() []Kind {
	packet := func(from whose, next byte, payload []byte) maker {
		return func(me, other Party) []byte {
			return ethernet(other.MAC, me.MAC, typeIPv6, ipv6(from(me, other), other.LinkLocal(), next, payload))
		}
	}
	wide := func(_, _ Party) netip.Addr { return global }
	return []Kind{
		{"ipv6-udp", true, packet(own, udp, datagram(9, 9))},
		{"ipv6-tcp", true, packet(own, tcp, segment())},
		{"ipv6-behind-options", true, packet(own, hopByHop, options(udp, datagram(9, 9)))},
		{"ipv6-nothing", true, packet(own, 59, nil)},
		{"ipv6-first-fragment", true, packet(own, fragment, fragmented(udp, 0, true, datagram(9, 9)))},
		{"ipv6-later-fragment", true, packet(own, fragment, fragmented(udp, 16, false, datagram(9, 9)))},
		{"dhcpv6-question", true, packet(own, udp, datagram(546, 547))},

		{"ipv6-of-another", false, packet(another, udp, datagram(9, 9))},
		{"ipv6-tcp-of-another", false, packet(another, tcp, segment())},
		{"ipv6-fragment-of-another", false, packet(another, fragment, fragmented(udp, 16, false, datagram(9, 9)))},
		{"ipv6-global", false, packet(wide, udp, datagram(9, 9))},
		{"ipv6-from-nobody", false, packet(unknown, udp, datagram(9, 9))},
		{"ipv6-with-mac-of-another", false, func(me, other Party) []byte {
			return ethernet(everybody, other.MAC, typeIPv6, ipv6(me.LinkLocal(), allNodes, udp, datagram(9, 9)))
		}},
		{"dhcpv6-answer", false, packet(own, udp, datagram(547, 546))},
		{"dhcpv6-answer-behind-options", false, packet(own, destOpts, options(udp, datagram(547, 546)))},
		{"dhcpv6-answer-in-a-fragment", false,
			packet(own, fragment, fragmented(udp, 0, true, datagram(547, 546)))},
		{"ipv6-pim-hello", false, packet(own, pim, []byte{0x20, 0, 0, 0})},
		// The payload's type would only be in the next fragment, which cannot be told from those of
		// other packets.
		{"ipv6-fragment-of-headers", false,
			packet(own, fragment, fragmented(destOpts, 0, true, []byte{icmpv6, 1, 1, 12, 0, 0, 0, 0}))},
		{"ipv6-headers-without-end", false, packet(own, hopByHop, []byte{destOpts, 9, 1, 4, 0, 0, 0, 0})},
	}
}

// A wrapper puts headers before an ICMPv6 message, and returns the type of the first header.
type wrapper func([]byte) (next byte, payload []byte)

func icmpKinds() []Kind {
	const router, solicitation, advertisement, redirect = 134, 135, 136, 137
	// send makes a frame with a message to a group, or to the other node if to is the zero Addr.
	// wrap puts headers before the message.
	send := func(kind byte, from whose, to netip.Addr, body maker, wrap ...wrapper) maker {
		return func(me, other Party) []byte {
			at, mac := to, group
			if !at.IsValid() {
				at, mac = other.LinkLocal(), func(netip.Addr) net.HardwareAddr { return other.MAC }
			}
			next, payload := byte(icmpv6), message(from(me, other), at, kind, body(me, other))
			for _, w := range wrap {
				next, payload = w(payload)
			}
			return ethernet(mac(at), me.MAC, typeIPv6, ipv6(from(me, other), at, next, payload))
		}
	}
	behindOptions := func(b []byte) (byte, []byte) { return hopByHop, options(icmpv6, b) }
	firstFragment := func(n int) wrapper {
		return func(b []byte) (byte, []byte) { return fragment, fragmented(icmpv6, 0, true, b[:n]) }
	}
	zeros := func(n int) maker { return func(_, _ Party) []byte { return make([]byte, n) } }
	target := func(whose whose, option byte) maker {
		return func(me, other Party) []byte {
			if option == 0 {
				return about(0, whose(me, other), 0, nil)
			}
			return about(0x20, whose(me, other), option, me.MAC) // an advertisement that overrides existing entries
		}
	}
	const sourceMAC, targetMAC = 1, 2
	// A router for half an hour, and the prefix 2001:db8:740::/64 for hours.
	advert := slices.Concat([]byte{64, 0, 0x07, 0x08, 0, 0, 0, 0, 0, 0, 0, 0},
		[]byte{3, 4, 64, 0xc0, 0, 0, 0x70, 0x80, 0, 0, 0x38, 0x40, 0, 0, 0, 0},
		[]byte{0x20, 1, 0x0d, 0xb8, 7, 0x40, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0})
	routerBody := func(_, _ Party) []byte { return advert }
	var none netip.Addr
	all := []Kind{
		{"ns", true, send(solicitation, own, none, target(another, sourceMAC))},
		{"na", true, send(advertisement, own, none, target(own, targetMAC))},
		{"na-to-all", true, send(advertisement, own, allNodes, target(own, targetMAC))},
		{"dad", true, func(me, other Party) []byte {
			return send(solicitation, unknown, solicited(me.LinkLocal()), target(own, 0))(me, other)
		}},
		{"rs", true, send(133, own, allRouters, zeros(4))},
		{"rs-from-nobody", true, send(133, unknown, allRouters, zeros(4))},
		{"mld-report", true, send(131, own, listeners, zeros(20), behindOptions)},
		{"mld-report-2", true, send(143, own, listeners, zeros(4), behindOptions)},
		{"mld-report-from-nobody", true, send(143, unknown, listeners, zeros(4), behindOptions)},
		{"mld-done", true, send(132, own, allRouters, zeros(20), behindOptions)},
		{"ping6", true, send(128, own, none, zeros(12))},
		{"ping6-answer", true, send(129, own, none, zeros(12))},
		{"ping6-fragment", true, send(128, own, none, zeros(12), firstFragment(16))},
		{"icmp6-too-big", true, send(2, own, none, zeros(12))},

		{"ra", false, send(router, own, allNodes, routerBody)},
		{"ra-behind-options", false, send(router, own, allNodes, routerBody, behindOptions)},
		{"ra-to-one", false, send(router, own, none, routerBody)},
		{"ra-as-another", false, send(router, another, allNodes, routerBody)},
		{"ra-in-a-fragment", false, send(router, own, allNodes, routerBody, firstFragment(40))},
		{"redirect", false, send(redirect, own, none, zeros(36))},
		{"redirect-behind-options", false, send(redirect, own, none, zeros(36), behindOptions)},
		{"mld-query", false, send(130, own, allNodes, zeros(20), behindOptions)},
		{"na-for-another", false, send(advertisement, own, none, target(another, targetMAC))},
		{"na-as-another", false, send(advertisement, another, allNodes, target(another, targetMAC))},
		{"na-for-another-behind-options", false,
			send(advertisement, own, allNodes, target(another, targetMAC), behindOptions)},
		{"na-from-nobody", false, send(advertisement, unknown, allNodes, target(own, targetMAC))},
		{"na-cut-before-its-target", false,
			send(advertisement, own, allNodes, target(another, targetMAC), firstFragment(8))},
		{"ns-as-another", false, send(solicitation, another, allNodes, target(own, sourceMAC))},
		{"dad-for-another", false, send(solicitation, unknown, allNodes, target(another, 0))},
		{"rs-as-another", false, send(133, another, allRouters, zeros(4))},
		{"mld-done-from-nobody", false, send(132, unknown, allRouters, zeros(20), behindOptions)},
		{"ping6-as-another", false, send(128, another, none, zeros(12))},
		{"ping6-from-nobody", false, send(128, unknown, none, zeros(12))},
	}
	// Renumbering, node information, inverse discovery, mobile prefixes, certification paths and
	// messages of multicast routers. Only routers send these, or no host on Orrery's networks.
	for _, kind := range []byte{138, 139, 140, 141, 142, 147, 148, 149, 151, 152, 153, 155, 200} {
		name := "icmp6-" + string([]byte{'0' + kind/100, '0' + kind/10%10, '0' + kind%10})
		all = append(all, Kind{name, false, send(kind, own, allNodes, zeros(24))})
	}
	return all
}

func oddKinds() []Kind {
	odd := func(to net.HardwareAddr, proto uint16, payload ...byte) maker {
		return func(me, _ Party) []byte { return ethernet(to, me.MAC, proto, append(payload, make([]byte, 8)...)) }
	}
	vlan := func(tags ...uint16) maker {
		return func(me, other Party) []byte {
			packet := ipv4(me.IPv4, other.IPv4, udp, 0, datagram(9, 9))
			return tagged(ethernet(other.MAC, me.MAC, typeIPv4, packet), tags...)
		}
	}
	cisco := net.HardwareAddr{0x01, 0x00, 0x0c, 0xcc, 0xcc, 0xcd}
	at := func(last byte) net.HardwareAddr { return net.HardwareAddr{0x01, 0x80, 0xc2, 0, 0, last} }
	// A configuration message of a bridge that would be the root: priority 0, and timers of 0, 20,
	// 2 and 15 s.
	bpdu := func(me, _ Party) []byte {
		id := append([]byte{0, 0}, me.MAC...)
		llc, cost, timers := []byte{0x42, 0x42, 3, 0, 0, 0, 0, 0}, make([]byte, 4), []byte{0, 0, 20, 0, 2, 0, 15, 0}
		message := slices.Concat(llc, id, cost, id, []byte{0x80, 1}, timers)
		return ethernet(bridges, me.MAC, uint16(len(message)), message)
	}
	return []Kind{
		{"bpdu", false, bpdu},
		{"bpdu-of-cisco", false, odd(cisco, 16, 0xaa, 0xaa, 3, 0, 0, 0x0c, 0x01, 0x0b)},
		{"llc", false, odd(everybody, 11, 0xe0, 0xe0, 3)},
		{"snap-ipv4", false, odd(everybody, 16, 0xaa, 0xaa, 3, 0, 0, 0, 8, 0)},
		{"lldp", false, odd(at(0x0e), 0x88cc)},
		{"lldp-to-all", false, odd(everybody, 0x88cc)},
		{"eapol", false, odd(at(3), 0x888e)},
		{"eapol-to-all", false, odd(everybody, 0x888e)},
		{"rarp", false, odd(everybody, 0x8035, 0, 1, 8, 0, 6, 4, 0, 3)},
		{"ptp", false, odd(net.HardwareAddr{0x01, 0x1b, 0x19, 0, 0, 0}, 0x88f7)},
		{"mpls", false, odd(everybody, 0x8847)},
		{"pppoe", false, odd(everybody, 0x8863)},
		{"loopback", false, odd(everybody, 0x9000)},
		{"experimental", false, odd(everybody, 0x88b5)},
		{"vlan", false, vlan(0x8100)},
		{"vlan-of-a-provider", false, vlan(0x88a8)},
		{"vlan-in-a-vlan", false, vlan(0x88a8, 0x8100)},
		{"vlan-of-old", false, vlan(0x9100)},
	}
}
