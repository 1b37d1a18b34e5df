package network

import (
	"net"
	"net/netip"

	"github.com/google/nftables/binaryutil"
	"github.com/google/nftables/expr"
	"golang.org/x/sys/unix"
)

// exprs gives the rule in the instructions of the kernel's nf_tables: load into register 1, compare.
func (r rule) exprs() []expr.Any {
	var all []expr.Any
	all = append(all, r.in.exprs(expr.MetaKeyIIFNAME)...)
	all = append(all, r.out.exprs(expr.MetaKeyOIFNAME)...)
	all = append(all, addressExprs(r.source, 12)...) // offsets in the IPv4 header
	all = append(all, addressExprs(r.dest, 16)...)
	if r.replies {
		states := expr.CtStateBitESTABLISHED | expr.CtStateBitRELATED
		all = append(all,
			&expr.Ct{Register: 1, Key: expr.CtKeySTATE},
			&expr.Bitwise{SourceRegister: 1, DestRegister: 1, Len: 4, Mask: binaryutil.NativeEndian.PutUint32(states), Xor: make([]byte, 4)},
			&expr.Cmp{Op: expr.CmpOpNeq, Register: 1, Data: make([]byte, 4)})
	}
	switch r.verdict {
	case masquerade:
		return append(all, &expr.Masq{})
	case notrack:
		return append(all, &expr.Notrack{})
	case drop:
		return append(all, &expr.Counter{}, &expr.Verdict{Kind: expr.VerdictDrop})
	default:
		return append(all, &expr.Verdict{Kind: expr.VerdictAccept})
	}
}

func (m linkMatch) exprs(key expr.MetaKey) []expr.Any {
	if m.name == "" {
		return nil
	}
	op := expr.CmpOpEq
	if m.not {
		op = expr.CmpOpNeq
	}
	data := []byte(m.name) // as much of a name as is compared
	if !m.prefix {
		data = make([]byte, unix.IFNAMSIZ)
		copy(data, m.name)
	}
	return []expr.Any{&expr.Meta{Key: key, Register: 1}, &expr.Cmp{Op: op, Register: 1, Data: data}}
}

func addressExprs(p netip.Prefix, offset uint32) []expr.Any {
	if !p.IsValid() {
		return nil
	}
	address := p.Addr().As4()
	return []expr.Any{
		&expr.Meta{Key: expr.MetaKeyNFPROTO, Register: 1},
		&expr.Cmp{Op: expr.CmpOpEq, Register: 1, Data: []byte{unix.NFPROTO_IPV4}},
		&expr.Payload{DestRegister: 1, Base: expr.PayloadBaseNetworkHeader, Offset: offset, Len: 4},
		&expr.Bitwise{SourceRegister: 1, DestRegister: 1, Len: 4, Mask: net.CIDRMask(p.Bits(), 32), Xor: make([]byte, 4)},
		&expr.Cmp{Op: expr.CmpOpEq, Register: 1, Data: address[:]},
	}
}
