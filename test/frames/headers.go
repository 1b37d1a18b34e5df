package frames

import (
	"encoding/binary"
	"net"
	"net/netip"
	"slices"
)

// Contents of a frame (EtherType).
const (
	typeIPv4 = 0x0800
	typeARP  = 0x0806
	typeIPv6 = 0x86dd
)

// Contents of an IP packet, including the IPv6 headers that may come first.
const (
	hopByHop = 0
	igmp     = 2
	tcp      = 6
	udp      = 17
	fragment = 44
	icmpv6   = 58
	destOpts = 60
	pim      = 103
)

var (
	everybody   = net.HardwareAddr{0xff, 0xff, 0xff, 0xff, 0xff, 0xff}
	bridges     = net.HardwareAddr{0x01, 0x80, 0xc2, 0, 0, 0} // destination of BPDUs
	unspecified = netip.IPv6Unspecified()
	allNodes    = netip.MustParseAddr("ff02::1")
	allRouters  = netip.MustParseAddr("ff02::2")
	listeners   = netip.MustParseAddr("ff02::16")
)

// ethernet returns a frame.
func ethernet(to, from net.HardwareAddr, proto uint16, payload []byte) []byte {
	return slices.Concat(to, from, binary.BigEndian.AppendUint16(nil, proto), payload)
}

// tagged puts VLAN tags before the contents of a frame.
func tagged(frame []byte, tags ...uint16) []byte {
	b := slices.Clone(frame[:12])
	for i, tag := range tags {
		b = binary.BigEndian.AppendUint16(b, tag)
		b = binary.BigEndian.AppendUint16(b, uint16(i+5))
	}
	return append(b, frame[12:]...)
}

// group returns the MAC of an IPv6 multicast group.
func group(a netip.Addr) net.HardwareAddr {
	b := a.As16()
	return net.HardwareAddr{0x33, 0x33, b[12], b[13], b[14], b[15]}
}

// solicited returns the solicited-node multicast group of an address (RFC 4291).
func solicited(a netip.Addr) netip.Addr {
	b := a.As16()
	return netip.AddrFrom16([16]byte{0: 0xff, 1: 2, 11: 1, 12: 0xff, 13: b[13], 14: b[14], 15: b[15]})
}

// arp returns an ARP message: mac claims to have address and asks about or answers target.
func arp(op byte, mac net.HardwareAddr, address, target netip.Addr) []byte {
	layout := []byte{0, 1, 8, 0, 6, 4, 0, op}
	return slices.Concat(layout, mac, address.AsSlice(), make([]byte, 6), target.AsSlice())
}

// ipv4 returns a packet. The offset is the fragment offset in units of 8 bytes.
func ipv4(from, to netip.Addr, proto byte, offset uint16, payload []byte) []byte {
	b := make([]byte, 20)
	b[0], b[8], b[9] = 0x45, 64, proto
	binary.BigEndian.PutUint16(b[2:], uint16(len(b)+len(payload)))
	binary.BigEndian.PutUint16(b[4:], 7) // identification
	binary.BigEndian.PutUint16(b[6:], offset)
	copy(b[12:], from.AsSlice())
	copy(b[16:], to.AsSlice())
	binary.BigEndian.PutUint16(b[10:], Checksum(b))
	return append(b, payload...)
}

// datagram returns a UDP datagram without a checksum. IPv4 allows that, and rules do not check it.
func datagram(from, to uint16) []byte {
	b := make([]byte, 8, 16)
	binary.BigEndian.PutUint16(b, from)
	binary.BigEndian.PutUint16(b[2:], to)
	binary.BigEndian.PutUint16(b[4:], 16)
	return append(b, "datagram"...)
}

// segment returns a TCP segment that opens a connection.
func segment() []byte {
	b := make([]byte, 20)
	binary.BigEndian.PutUint16(b, 40000)
	binary.BigEndian.PutUint16(b[2:], 80)
	b[12], b[13] = 0x50, 0x02
	return b
}

// ipv6 returns a packet whose first header is next.
func ipv6(from, to netip.Addr, next byte, payload []byte) []byte {
	b := []byte{0x60, 0, 0, 0, 0, 0, next, 255}
	binary.BigEndian.PutUint16(b[4:], uint16(len(payload)))
	return slices.Concat(b, from.AsSlice(), to.AsSlice(), payload)
}

// options returns a header of options without effect, hop-by-hop or others, before next.
func options(next byte, payload []byte) []byte {
	return append([]byte{next, 0, 1, 4, 0, 0, 0, 0}, payload...)
}

// fragmented returns a fragment header with a part of the fragmented payload. The offset is in
// bytes.
func fragmented(next byte, offset uint16, more bool, part []byte) []byte {
	b := []byte{next, 0, 0, 0, 0, 0, 0, 7}
	if more {
		offset |= 1
	}
	binary.BigEndian.PutUint16(b[2:], offset)
	return append(b, part...)
}

// message returns an ICMPv6 message with its checksum and body.
func message(from, to netip.Addr, kind byte, body []byte) []byte {
	b := slices.Concat([]byte{kind, 0, 0, 0}, body)
	length := binary.BigEndian.AppendUint32(nil, uint32(len(b)))
	summed := slices.Concat(from.AsSlice(), to.AsSlice(), length, []byte{0, 0, 0, icmpv6}, b)
	binary.BigEndian.PutUint16(b[2:], Checksum(summed))
	return b
}

// about returns the body of a neighbour message: flags, a target and an option with a MAC.
func about(flags byte, target netip.Addr, option byte, mac net.HardwareAddr) []byte {
	body := append([]byte{flags, 0, 0, 0}, target.AsSlice()...)
	if mac != nil {
		body = append(append(body, option, 1), mac...)
	}
	return body
}

// Checksum returns the checksum of IP, UDP, ICMP and similar protocols (RFC 1071).
func Checksum(b []byte) uint16 {
	if len(b)%2 == 1 {
		b = append(slices.Clone(b), 0)
	}
	var sum uint32
	for i := 0; i < len(b); i += 2 {
		sum += uint32(binary.BigEndian.Uint16(b[i:]))
	}
	for sum>>16 != 0 {
		sum = sum&0xffff + sum>>16
	}
	return ^uint16(sum)
}
