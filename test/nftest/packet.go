package nftest

import (
	"encoding/binary"
	"fmt"

	"github.com/google/nftables/binaryutil"
	"github.com/google/nftables/expr"
	"golang.org/x/sys/unix"
)

// A Packet is what rules see of a packet and of the host that receives it.
type Packet struct {
	In, Out     string // links, or "" for none
	InIndex     uint32
	Frame       []byte // with its Ethernet header
	Mark        uint32
	User        *uint32 // its sender, or nil for none
	Local       bool    // its destination is an address of this host
	WayBack     uint32  // the link by which its source is reached, or 0 if not the incoming one
	Established bool    // it belongs to an existing connection, or is about one
	Translated  bool    // the destination of its connection was translated
	Connections uint32  // how many the connection limit has counted
}

const ethernetHeader = 14

// native returns a number in the kernel's byte order, used for values not read from packets.
func native(n uint32) []byte { return binaryutil.NativeEndian.PutUint32(n) }

// meta returns the kernel's metadata of a packet.
func (p *Packet) meta(key expr.MetaKey) (data []byte, ok bool) {
	name := func(s string) ([]byte, bool) { return append([]byte(s), make([]byte, unix.IFNAMSIZ-len(s))...), true }
	switch key {
	case expr.MetaKeyIIFNAME:
		return name(p.In)
	case expr.MetaKeyOIFNAME:
		return name(p.Out)
	case expr.MetaKeyIIF:
		return native(p.InIndex), true
	case expr.MetaKeyMARK:
		return native(p.Mark), true
	case expr.MetaKeySKUID:
		if p.User == nil {
			return nil, false
		}
		return native(*p.User), true
	case expr.MetaKeyNFPROTO:
		family, ok := map[uint16]byte{unix.ETH_P_IP: unix.NFPROTO_IPV4, unix.ETH_P_IPV6: unix.NFPROTO_IPV6}[p.protocol()]
		return []byte{family}, ok
	case expr.MetaKeyL4PROTO:
		h := p.headers()
		return []byte{h.inner}, h.known
	}
	panic(fmt.Sprintf("nftest: meta %d", key))
}

// bytes returns a part of the packet, if the packet has it.
func (p *Packet) bytes(base expr.PayloadBase, offset, length uint32) (data []byte, ok bool) {
	at := map[expr.PayloadBase]int{expr.PayloadBaseLLHeader: 0, expr.PayloadBaseNetworkHeader: ethernetHeader}[base]
	if base == expr.PayloadBaseTransportHeader {
		h := p.headers()
		if !h.known || h.later {
			return nil, false
		}
		at = h.transport
	}
	return p.part(at+int(offset), int(length))
}

func (p *Packet) part(at, length int) (data []byte, ok bool) {
	if at+length > len(p.Frame) {
		return nil, false
	}
	return p.Frame[at : at+length], true
}

// fragment returns a part of the IPv6 fragment header, if there is one.
func (p *Packet) fragment(offset, length uint32) (data []byte, ok bool) {
	h := p.headers()
	if h.fragment == 0 {
		return nil, false
	}
	return p.part(h.fragment+int(offset), int(length))
}

// fib returns the result of a route lookup: the type of the destination, or the link to the source.
func (p *Packet) fib(i *expr.Fib) []byte {
	switch {
	case i.FlagDADDR && i.ResultADDRTYPE && p.Local:
		return native(unix.RTN_LOCAL)
	case i.FlagDADDR && i.ResultADDRTYPE:
		return native(unix.RTN_UNICAST)
	case i.FlagSADDR && i.FlagIIF && i.ResultOIF:
		return native(p.WayBack)
	}
	panic(fmt.Sprintf("nftest: fib %+v", i))
}

// connection returns what is known of the connection of a packet.
func (p *Packet) connection(key expr.CtKey) uint32 {
	const translated = 1 << 5 // IPS_DST_NAT
	switch {
	case key == expr.CtKeySTATE:
		return p.state()
	case key == expr.CtKeySTATUS && p.Translated:
		return translated
	case key == expr.CtKeySTATUS:
		return 0
	}
	panic(fmt.Sprintf("nftest: ct %d", key))
}

func (p *Packet) state() uint32 {
	if p.Established {
		return expr.CtStateBitESTABLISHED
	}
	return expr.CtStateBitNEW
}

func (p *Packet) protocol() uint16 {
	b, ok := p.part(12, 2)
	if !ok {
		return 0
	}
	return binary.BigEndian.Uint16(b)
}

// headers are the positions of the headers after the Ethernet header.
type headers struct {
	known     bool // it is an IP packet, as far as the kernel parses it
	inner     byte // protocol after all extension headers
	transport int  // position of its header
	later     bool // it is a fragment other than the first, without such a header
	fragment  int  // position of the IPv6 fragment header, or 0 if there is none
}

func (p *Packet) headers() (h headers) {
	b := p.Frame[min(ethernetHeader, len(p.Frame)):]
	switch {
	case p.protocol() == unix.ETH_P_IP && len(b) >= 20 && b[0]>>4 == 4:
		h = headers{known: true, inner: b[9], transport: ethernetHeader + int(b[0]&15)*4}
		h.later = binary.BigEndian.Uint16(b[6:])&0x1fff != 0
	case p.protocol() == unix.ETH_P_IPV6 && len(b) >= 40 && b[0]>>4 == 6:
		h = headers{inner: b[6], transport: ethernetHeader + 40}
		h.known = p.skipExtensions(&h)
	}
	return h
}

// skipExtensions skips extension headers, as ipv6_find_hdr does, and reports whether all of them
// are complete.
func (p *Packet) skipExtensions(h *headers) bool {
	for {
		b, ok := p.part(h.transport, 8)
		switch h.inner {
		case unix.IPPROTO_HOPOPTS, unix.IPPROTO_ROUTING, unix.IPPROTO_DSTOPTS:
			if !ok {
				return false
			}
			h.inner, h.transport = b[0], h.transport+8*(int(b[1])+1)
		case unix.IPPROTO_FRAGMENT:
			if !ok {
				return false
			}
			h.fragment, h.later = h.transport, binary.BigEndian.Uint16(b[2:])&^7 != 0
			h.inner, h.transport = b[0], h.transport+8
			if h.later {
				return true
			}
		default:
			return true
		}
	}
}
