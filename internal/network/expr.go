package network

import (
	"net"
	"net/netip"

	"github.com/google/nftables/binaryutil"
	"github.com/google/nftables/expr"
	"golang.org/x/sys/unix"

	"orrery/internal/site"
)

// exprs returns the rule as instructions of the kernel's nf_tables, which load into register 1 and
// compare. set makes a set of hosts and returns the instruction that looks an address up in it.
func (r rule) exprs(set func([]netip.Addr) expr.Any) []expr.Any {
	var all []expr.Any
	all = append(all, r.in.exprs(expr.MetaKeyIIFNAME, expr.MetaKeyIIF)...)
	all = append(all, r.out.exprs(expr.MetaKeyOIFNAME, expr.MetaKeyOIF)...)
	if r.mark != 0 {
		all = append(all, &expr.Meta{Key: expr.MetaKeyMARK, Register: 1}, equal(binaryutil.NativeEndian.PutUint32(r.mark)))
	}
	all = append(all, r.between.exprs(set)...)
	if r.ipv6 {
		all = append(all, familyExprs(unix.NFPROTO_IPV6)...)
	}
	all = append(all, addressExprs(r.source, 12, r.forged)...) // offsets in the IPv4 header
	if r.astray {
		all = append(all, familyExprs(unix.NFPROTO_IPV4)...)
		all = append(all, &expr.Fib{Register: 1, FlagSADDR: true, FlagIIF: true, ResultOIF: true}, equal(make([]byte, 4)))
	}
	all = append(all, addressExprs(r.dest, 16, false)...)
	if r.passing {
		all = append(all, &expr.Fib{Register: 1, FlagDADDR: true, ResultADDRTYPE: true},
			&expr.Cmp{Op: expr.CmpOpNeq, Register: 1, Data: binaryutil.NativeEndian.PutUint32(unix.RTN_LOCAL)})
	}
	if r.local {
		all = append(all, &expr.Fib{Register: 1, FlagDADDR: true, ResultADDRTYPE: true},
			equal(binaryutil.NativeEndian.PutUint32(unix.RTN_LOCAL)))
	}
	all = append(all, addressExprs(r.except, 16, true)...)
	if r.ask {
		const echoRequest = 8
		all = append(all, protoExprs(unix.IPPROTO_ICMP)...)
		all = append(all, &expr.Payload{DestRegister: 1, Base: expr.PayloadBaseTransportHeader, Offset: 0, Len: 1},
			equal([]byte{echoRequest}))
	}
	if r.port.Proto != "" {
		all = append(all, portExprs(r.port)...)
	}
	if r.replies {
		all = append(all, stateExprs(expr.CtStateBitESTABLISHED|expr.CtStateBitRELATED)...)
	}
	if r.translated {
		all = append(all, connectionExprs(expr.CtKeySTATUS, ctStatusDNAT)...)
	}
	if r.beyond > 0 {
		all = append(all, stateExprs(expr.CtStateBitNEW)...)
		all = append(all, &expr.Connlimit{Count: r.beyond, Flags: expr.NFT_CONNLIMIT_F_INV})
	}
	switch r.verdict {
	case masquerade:
		return append(all, &expr.Masq{})
	case translate:
		return append(all, translateExprs(r.to)...)
	case notrack:
		return append(all, &expr.Notrack{})
	case untracked:
		return append(all, &expr.Notrack{}, &expr.Verdict{Kind: expr.VerdictAccept})
	case drop:
		return append(all, &expr.Counter{}, &expr.Verdict{Kind: expr.VerdictDrop})
	default:
		return append(all, &expr.Verdict{Kind: expr.VerdictAccept})
	}
}

func (m linkMatch) exprs(byName, byIndex expr.MetaKey) []expr.Any {
	if m.name == "" {
		return nil
	}
	if m.first {
		return []expr.Any{&expr.Meta{Key: byIndex, Register: 1}, equal(binaryutil.NativeEndian.PutUint32(1))}
	}
	op := expr.CmpOpEq
	if m.not {
		op = expr.CmpOpNeq
	}
	data := []byte(m.name) // the part of a name that is compared
	if !m.prefix {
		data = make([]byte, unix.IFNAMSIZ)
		copy(data, m.name)
	}
	return []expr.Any{&expr.Meta{Key: byName, Register: 1}, &expr.Cmp{Op: op, Register: 1, Data: data}}
}

// equal continues with a rule if register 1 contains data.
func equal(data []byte) *expr.Cmp { return &expr.Cmp{Op: expr.CmpOpEq, Register: 1, Data: data} }

// addressExprs matches an address of the IPv4 header that is in p or, if not is true, outside of p.
func addressExprs(p netip.Prefix, offset uint32, not bool) []expr.Any {
	if !p.IsValid() {
		return nil
	}
	op := expr.CmpOpEq
	if not {
		op = expr.CmpOpNeq
	}
	address := p.Addr().As4()
	return append(familyExprs(unix.NFPROTO_IPV4),
		&expr.Payload{DestRegister: 1, Base: expr.PayloadBaseNetworkHeader, Offset: offset, Len: 4},
		&expr.Bitwise{SourceRegister: 1, DestRegister: 1, Len: 4, Mask: net.CIDRMask(p.Bits(), 32), Xor: make([]byte, 4)},
		&expr.Cmp{Op: op, Register: 1, Data: address[:]})
}

func familyExprs(family byte) []expr.Any {
	return []expr.Any{&expr.Meta{Key: expr.MetaKeyNFPROTO, Register: 1}, equal([]byte{family})}
}

func protoExprs(proto byte) []expr.Any {
	return []expr.Any{&expr.Meta{Key: expr.MetaKeyL4PROTO, Register: 1}, equal([]byte{proto})}
}

func portExprs(o site.PortRange) []expr.Any {
	proto := byte(unix.IPPROTO_TCP)
	if o.Proto == "udp" {
		proto = unix.IPPROTO_UDP
	}
	return append(protoExprs(proto),
		&expr.Payload{DestRegister: 1, Base: expr.PayloadBaseTransportHeader, Offset: 2, Len: 2},
		&expr.Cmp{Op: expr.CmpOpGte, Register: 1, Data: binaryutil.BigEndian.PutUint16(o.First)},
		&expr.Cmp{Op: expr.CmpOpLte, Register: 1, Data: binaryutil.BigEndian.PutUint16(o.Last)})
}

// stateExprs matches packets of connections in one of some states.
func stateExprs(states uint32) []expr.Any { return connectionExprs(expr.CtKeySTATE, states) }

// ctStatusDNAT is the flag of connections whose destination was translated (IPS_DST_NAT,
// include/uapi/linux/netfilter/nf_conntrack_common.h).
const ctStatusDNAT = 1 << 5

// connectionExprs matches packets of connections with one of some bits in a key.
func connectionExprs(key expr.CtKey, bits uint32) []expr.Any {
	return []expr.Any{
		&expr.Ct{Register: 1, Key: key},
		&expr.Bitwise{SourceRegister: 1, DestRegister: 1, Len: 4, Mask: binaryutil.NativeEndian.PutUint32(bits),
			Xor: make([]byte, 4)},
		&expr.Cmp{Op: expr.CmpOpNeq, Register: 1, Data: make([]byte, 4)},
	}
}

// translateExprs translates the destination of a new connection. The port stays if it is 0.
func translateExprs(to netip.AddrPort) []expr.Any {
	address := to.Addr().As4()
	all := []expr.Any{&expr.Immediate{Register: 1, Data: address[:]}}
	nat := &expr.NAT{Type: expr.NATTypeDestNAT, Family: unix.NFPROTO_IPV4, RegAddrMin: 1}
	if to.Port() != 0 {
		all = append(all, &expr.Immediate{Register: 2, Data: binaryutil.BigEndian.PutUint16(to.Port())})
		nat.RegProtoMin, nat.Specified = 2, true
	}
	return append(all, nat)
}
