// Package nftest evaluates rules of nftables in memory, as the kernel would. A hermetic test can
// send packets through them. The package supports the instructions that Orrery uses, and panics at
// any other.
package nftest

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"net/netip"

	"github.com/google/nftables/expr"
	"golang.org/x/sys/unix"
)

// A Table is chains of rules, and the sets that they look up.
type Table struct {
	Chains map[string][][]expr.Any
	Sets   map[string]map[string]bool // keys
}

// A Fate is the result of a packet.
type Fate struct {
	Verdict    string // "accept", "drop", or "" if no rule decides
	Untracked  bool
	Masquerade bool
	To         netip.AddrPort // the translated destination of a new connection; the port is 0 if it stays
}

// Run sends a packet through a chain.
func (t *Table) Run(chain string, p *Packet) Fate {
	var f Fate
	t.run(chain, p, &f)
	return f
}

// run evaluates the rules of a chain until one decides, and reports whether one did.
func (t *Table) run(chain string, p *Packet, f *Fate) bool {
	for _, rule := range t.Chains[chain] {
		e := evaluation{table: t, packet: p, fate: f}
		for _, instruction := range rule {
			if !e.do(instruction) {
				break
			}
		}
		switch v := e.verdict; {
		case v == nil:
		case v.Kind == expr.VerdictAccept, v.Kind == expr.VerdictDrop:
			f.Verdict = map[expr.VerdictKind]string{expr.VerdictAccept: "accept", expr.VerdictDrop: "drop"}[v.Kind]
			return true
		case v.Kind == expr.VerdictJump:
			if t.run(v.Chain, p, f) {
				return true
			}
		case v.Kind == expr.VerdictGoto:
			return t.run(v.Chain, p, f)
		default:
			panic(fmt.Sprintf("nftest: verdict %d", v.Kind))
		}
	}
	return false
}

// An evaluation is the evaluation of one rule.
type evaluation struct {
	table     *Table
	packet    *Packet
	fate      *Fate
	registers [80]byte
	verdict   *expr.Verdict
}

// register returns the bytes starting at a register. Registers 1 to 4 have 16 bytes each, and those
// from 8 on are their words.
func (e *evaluation) register(number uint32) []byte {
	if number < 8 {
		return e.registers[16*number:]
	}
	return e.registers[16+4*(number-8):]
}

// load loads data into a register, padded with zeroes to the end of its last word. Without data the
// rule does not match.
func (e *evaluation) load(register uint32, data []byte, ok bool) bool {
	if ok {
		clear(e.register(register)[:(len(data)+3)/4*4])
		copy(e.register(register), data)
	}
	return ok
}

// do executes an instruction, and reports whether the rule continues.
func (e *evaluation) do(instruction expr.Any) bool {
	switch i := instruction.(type) {
	case *expr.Meta:
		data, ok := e.packet.meta(i.Key)
		return e.load(i.Register, data, ok)
	case *expr.Payload:
		data, ok := e.packet.bytes(i.Base, i.Offset, i.Len)
		return e.load(i.DestRegister, data, ok)
	case *expr.Exthdr:
		data, ok := e.packet.fragment(i.Offset, i.Len)
		return e.load(i.DestRegister, data, ok)
	case *expr.Fib:
		return e.load(i.Register, e.packet.fib(i), true)
	case *expr.Ct:
		return e.load(i.Register, native(e.packet.connection(i.Key)), true)
	case *expr.Immediate:
		return e.load(i.Register, i.Data, true)
	case *expr.NAT:
		address, _ := netip.AddrFromSlice(e.register(i.RegAddrMin)[:4])
		port := uint16(0)
		if i.RegProtoMin != 0 {
			port = binary.BigEndian.Uint16(e.register(i.RegProtoMin))
		}
		e.fate.To = netip.AddrPortFrom(address, port)
		e.verdict = &expr.Verdict{Kind: expr.VerdictAccept}
	case *expr.Bitwise:
		from, to := e.register(i.SourceRegister), e.register(i.DestRegister)
		for n := range i.Len {
			to[n] = from[n]&i.Mask[n] ^ i.Xor[n]
		}
	case *expr.Cmp:
		return compare(i.Op, bytes.Compare(e.register(i.Register)[:len(i.Data)], i.Data))
	case *expr.Lookup:
		return e.contains(i) != i.Invert
	case *expr.Connlimit:
		return (e.packet.Connections > i.Count) == (i.Flags&expr.NFT_CONNLIMIT_F_INV != 0)
	case *expr.Dynset:
		if e.table.Sets[i.SetName] == nil {
			panic("nftest: no set " + i.SetName)
		}
		e.table.Sets[i.SetName][string(e.register(i.SrcRegKey)[:unix.IFNAMSIZ])] = true // until the test removes it
	case *expr.Counter:
	case *expr.Masq:
		e.fate.Masquerade = true
		e.verdict = &expr.Verdict{Kind: expr.VerdictAccept}
	case *expr.Notrack:
		e.fate.Untracked = true
	case *expr.Verdict:
		e.verdict = i
	default:
		panic(fmt.Sprintf("nftest: %T", i))
	}
	return true
}

// contains reports whether the set contains the value in the registers from the source register on.
func (e *evaluation) contains(l *expr.Lookup) bool {
	set, ok := e.table.Sets[l.SetName]
	if !ok {
		panic("nftest: no set " + l.SetName)
	}
	for key := range set {
		if bytes.HasPrefix(e.register(l.SourceRegister), []byte(key)) {
			return true
		}
	}
	return false
}

// compare reports whether an ordering satisfies an operator.
func compare(op expr.CmpOp, order int) bool {
	switch op {
	case expr.CmpOpEq:
		return order == 0
	case expr.CmpOpNeq:
		return order != 0
	case expr.CmpOpGte:
		return order >= 0
	case expr.CmpOpLte:
		return order <= 0
	}
	panic(fmt.Sprintf("nftest: comparison %d", op))
}
