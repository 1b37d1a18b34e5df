package ports

import (
	"slices"

	"github.com/google/nftables"
	"github.com/google/nftables/expr"
	"golang.org/x/sys/unix"

	"orrery/internal/network/vxlan"
)

// A rule is one of the table, with what nft(8) would call it.
type rule struct {
	why   string
	exprs []expr.Any
}

func rules() []rule {
	link := &expr.Meta{Key: expr.MetaKeyIIFNAME, Register: 1} // and what it is joined with comes into register 2
	load := func(base expr.PayloadBase, offset, length uint32) *expr.Payload {
		return &expr.Payload{DestRegister: 2, Base: base, Offset: offset, Len: length}
	}
	notIn := func(s *nftables.Set) *expr.Lookup {
		return &expr.Lookup{SourceRegister: 1, SetName: s.Name, SetID: s.ID, Invert: true}
	}
	// As it came over the wire: of what is tagged, the tag's.
	protocol := func(p uint16) []expr.Any {
		return []expr.Any{&expr.Payload{DestRegister: 1, Base: expr.PayloadBaseLLHeader, Offset: 12, Len: 2}, equal([]byte{byte(p >> 8), byte(p)})}
	}
	dropped := []expr.Any{&expr.Counter{}, &expr.Verdict{Kind: expr.VerdictDrop}}
	ip := slices.Concat(protocol(unix.ETH_P_IP), []expr.Any{link, load(expr.PayloadBaseLLHeader, 6, 6),
		&expr.Payload{DestRegister: unix.NFT_REG32_06, Base: expr.PayloadBaseNetworkHeader, Offset: 12, Len: 4}}) // the half of register 2 that a MAC leaves free
	all := []rule{
		// Nearly all that is sent: it need not meet the others.
		{"other hosts", []expr.Any{link, equal([]byte(vxlan.Prefix)), &expr.Verdict{Kind: expr.VerdictAccept}}},
		{"IP of its own", append(ip, &expr.Lookup{SourceRegister: 1, SetName: ownSet.Name, SetID: ownSet.ID}, &expr.Verdict{Kind: expr.VerdictAccept})},
		{"not held", []expr.Any{link, notIn(heldSet), &expr.Verdict{Kind: expr.VerdictAccept}}},
		{"MAC of another", []expr.Any{link, load(expr.PayloadBaseLLHeader, 6, 6), notIn(macSet)}},
		{"IP of another", append(protocol(unix.ETH_P_IP), link, load(expr.PayloadBaseNetworkHeader, 12, 4), notIn(addressSet))},
		{"ARP with the MAC of another", append(protocol(unix.ETH_P_ARP), link, load(expr.PayloadBaseNetworkHeader, 8, 6), notIn(macSet))},
		{"ARP that asks before it has an address", append(protocol(unix.ETH_P_ARP),
			&expr.Payload{DestRegister: 1, Base: expr.PayloadBaseNetworkHeader, Offset: 14, Len: 4}, equal(make([]byte, 4)), &expr.Verdict{Kind: expr.VerdictAccept})},
		{"ARP with the IP of another", append(protocol(unix.ETH_P_ARP), link, load(expr.PayloadBaseNetworkHeader, 14, 4), notIn(addressSet))},
	}
	for _, tagged := range []uint16{unix.ETH_P_8021Q, unix.ETH_P_8021AD, unix.ETH_P_QINQ1, unix.ETH_P_QINQ2, unix.ETH_P_QINQ3} {
		all = append(all, rule{"VLAN tag", protocol(tagged)})
	}
	for i, r := range all {
		if _, ends := r.exprs[len(r.exprs)-1].(*expr.Verdict); !ends {
			all[i].exprs = append(r.exprs, dropped...)
		}
	}
	return all
}

// equal goes on with a rule if register 1 holds data.
func equal(data []byte) *expr.Cmp { return &expr.Cmp{Op: expr.CmpOpEq, Register: 1, Data: data} }
