package nftest

import (
	"encoding/binary"
	"fmt"

	"github.com/google/nftables/binaryutil"
	"github.com/google/nftables/expr"
	"golang.org/x/sys/unix"
)

// A Packet is what rules see of a packet and of the host that it comes to.
type Packet struct {
	In, Out     string // links; "": none
	InIndex     uint32
	Frame       []byte // with its header of Ethernet
	Mark        uint32
	User        *uint32 // who sends it; nil: no user does
	Local       bool    // its destination is an address of this host
	WayBack     uint32  // the link by which its source is reached; 0: not by that by which it came
	Established bool    // it is of a connection that is there, or about one; else of a new one
	Connections uint32  // how many the connection limit has seen
}

const ethernetHeader = 14

// native returns a number as the kernel keeps those that are not of packets.
func native(n uint32) []byte { return binaryutil.NativeEndian.PutUint32(n) }

// meta returns what the kernel knows of a packet besides its bytes.
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

// fragment returns a part of the fragment header of IPv6, if there is one.
func (p *Packet) fragment(offset, length uint32) (data []byte, ok bool) {
	h := p.headers()
	if h.fragment == 0 {
		return nil, false
	}
	return p.part(h.fragment+int(offset), int(length))
}

// fib returns what the routes say: of the destination its kind, of the source the way.
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

// headers says where the headers behind that of Ethernet are.
type headers struct {
	known     bool // the packet is of IP, as far as the kernel reads it
	inner     byte // protocol, behind all extension headers
	transport int  // where its header is
	later     bool // it is a fragment, and not the first one, so that it has no such header
	fragment  int  // where the fragment header of IPv6 is; 0: there is none
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

// skipExtensions goes on behind extension headers, as ipv6_find_hdr does, and reports whether all
// of them are there.
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
