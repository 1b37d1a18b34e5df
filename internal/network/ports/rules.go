package ports

import (
	"fmt"
	"strings"
	"time"

	"github.com/google/nftables"
	"github.com/google/nftables/binaryutil"
	"github.com/google/nftables/expr"
	"golang.org/x/sys/unix"

	"orrery/internal/site/spec"
)

// A chain is a list of rules. The first rule that a frame matches and that has a final verdict
// decides.
type chain struct {
	name  string
	rules []rule
}

// A rule is the verdict for frames that meet all of its conditions.
type rule struct {
	why  string
	when []condition
	then string // accept, drop, or a chain to continue with
}

const (
	accept = "accept"
	drop   = "drop"
	jump   = "jump "   // followed by a chain, which returns here if it does not decide
	goTo   = "goto "   // followed by a chain
	extend = "extend " // followed by how long the port stays in the set holding; the next rule goes on
)

// A field is a part of a frame that can be compared.
type field struct {
	name     string // as nft(8) calls it
	kind     fieldKind
	at, size uint32 // offset and size in bytes, for kinds that have a position
	mask     []byte // the bits that count, or nil for all
}

type fieldKind int

const (
	portName      fieldKind = iota // port on which the frame arrived
	inFrame                        // in the Ethernet header
	inPacket                       // in the IP or ARP header
	inSegment                      // in the payload of IP
	innerProtocol                  // protocol of the payload of IP
	inFragment                     // in the header of an IPv6 fragment
)

// A set has elements, each of which describes one port.
type set struct {
	name   string
	fields []field
}

// A condition compares fields with values or, concatenated, with the elements of a set.
type condition struct {
	fields []field
	set    string // name of the set, or "" to compare with the values
	values [][]byte
	not    bool // if none of the values, or no element of the set, matches
}

func when(all ...condition) []condition { return all }

// advertisement returns the conditions of an advertisement of a node that holds a service. A node that resigns
// sends one with priority 0.
func advertisement(often condition) []condition {
	return when(is(ipInner, vrrp), is16(ipOffset, 0), is(advertKind, 0x31), isNot(advertPriority, 0), often,
		in(own, port, from, ipFrom))
}

// is matches if a field has these bytes.
func is(f field, value ...byte) condition {
	return condition{fields: []field{f}, values: [][]byte{value}}
}

func is16(f field, value uint16) condition { return is(f, binaryutil.BigEndian.PutUint16(value)...) }

// isNot matches if a field of one byte has none of these values.
func isNot(f field, values ...byte) condition {
	c := condition{fields: []field{f}, not: true}
	for _, v := range values {
		c.values = append(c.values, []byte{v})
	}
	return c
}

func isNot16(f field, values ...uint16) condition {
	c := condition{fields: []field{f}, not: true}
	for _, v := range values {
		c.values = append(c.values, binaryutil.BigEndian.PutUint16(v))
	}
	return c
}

// isNotAll matches if a field does not have these bytes.
func isNotAll(f field, value ...byte) condition {
	return condition{fields: []field{f}, values: [][]byte{value}, not: true}
}

// hasPrefix matches if a name begins with a word.
func hasPrefix(f field, word string) condition { return is(f, []byte(word)...) }

func in(s set, fields ...field) condition { return condition{fields: fields, set: s.name} }

func notIn(s set, fields ...field) condition {
	return condition{fields: fields, set: s.name, not: true}
}

// String returns the condition in a syntax close to that of nft(8).
func (c condition) String() string {
	var words []string
	for _, f := range c.fields {
		words = append(words, f.name)
	}
	text := strings.Join(words, " . ")
	if c.not {
		text += " !="
	}
	if c.set != "" {
		return text + " @" + c.set
	}
	if len(c.values) == 1 {
		return text + fmt.Sprintf(" 0x%x", c.values[0])
	}
	words = nil
	for _, v := range c.values {
		words = append(words, fmt.Sprintf("0x%x", v))
	}
	return text + " { " + strings.Join(words, ", ") + " }"
}

// String returns the rule in a syntax close to that of nft(8).
func (r rule) String() string {
	var words []string
	for _, c := range r.when {
		words = append(words, c.String())
	}
	return strings.Join(append(words, r.then), " ")
}

// comment returns the comment that the kernel stores with the rule. By its digest, Open checks that
// the rule is the expected one, in a table whose sets are of this version.
func (r rule) comment() string {
	return fmt.Sprintf("%s (%s)", r.why, spec.DigestBytes(fmt.Append(nil, r, maxElements))[:8])
}

// exprs returns the rule as instructions of the kernel's nf_tables.
func (r rule) exprs() []expr.Any {
	var all []expr.Any
	for _, c := range r.when {
		all = append(all, c.exprs()...)
	}
	to, chain, _ := strings.Cut(r.then, " ")
	switch to + " " {
	case extend:
		timeout, _ := time.ParseDuration(chain) // which tests check
		return append(append(all, port.load(unix.NFT_REG32_00)...), &expr.Dynset{SrcRegKey: unix.NFT_REG32_00,
			SetName: holding.name, Operation: unix.NFT_DYNSET_OP_UPDATE, Timeout: timeout})
	case jump:
		return append(all, &expr.Verdict{Kind: expr.VerdictJump, Chain: chain})
	case goTo:
		return append(all, &expr.Verdict{Kind: expr.VerdictGoto, Chain: chain})
	}
	if to == drop {
		return append(all, &expr.Counter{}, &expr.Verdict{Kind: expr.VerdictDrop})
	}
	return append(all, &expr.Verdict{Kind: expr.VerdictAccept})
}

// exprs loads the fields into registers, each aligned to a word of four bytes, and compares them.
func (c condition) exprs() []expr.Any {
	var all []expr.Any
	register := uint32(unix.NFT_REG32_00)
	for _, f := range c.fields {
		all = append(all, f.load(register)...)
		register += (f.bytes() + 3) / 4
	}
	if c.set != "" {
		return append(all, &expr.Lookup{SourceRegister: unix.NFT_REG32_00, SetName: c.set, Invert: c.not})
	}
	op := expr.CmpOpEq
	if c.not {
		op = expr.CmpOpNeq
	}
	for _, v := range c.values {
		all = append(all, &expr.Cmp{Op: op, Register: unix.NFT_REG32_00, Data: v})
	}
	return all
}

// load loads the field into registers.
func (f field) load(register uint32) []expr.Any {
	payload := func(base expr.PayloadBase) expr.Any {
		return &expr.Payload{DestRegister: register, Base: base, Offset: f.at, Len: f.size}
	}
	var load expr.Any
	switch f.kind {
	case portName:
		load = &expr.Meta{Key: expr.MetaKeyIIFNAME, Register: register}
	case inFrame:
		load = payload(expr.PayloadBaseLLHeader)
	case inPacket:
		load = payload(expr.PayloadBaseNetworkHeader)
	case inSegment:
		load = payload(expr.PayloadBaseTransportHeader)
	case innerProtocol:
		load = &expr.Meta{Key: expr.MetaKeyL4PROTO, Register: register}
	case inFragment:
		load = &expr.Exthdr{
			DestRegister: register, Type: unix.IPPROTO_FRAGMENT, Offset: f.at, Len: f.size, Op: expr.ExthdrOpIpv6,
		}
	}
	if f.mask == nil {
		return []expr.Any{load}
	}
	return []expr.Any{load, &expr.Bitwise{
		SourceRegister: register, DestRegister: register, Len: f.size, Mask: f.mask, Xor: make([]byte, f.size),
	}}
}

// bytes returns the size of a field in bytes.
func (f field) bytes() uint32 {
	if f.kind == portName {
		return unix.IFNAMSIZ
	}
	return f.size
}

// keyType returns the type of a set's elements, which nft(8) uses to display them.
func (s set) keyType() nftables.SetDatatype {
	var all []nftables.SetDatatype
	for _, f := range s.fields {
		all = append(all, map[string]nftables.SetDatatype{
			port.name: nftables.TypeIFName, from.name: nftables.TypeEtherAddr,
			ipFrom.name: nftables.TypeIPAddr, ip6From.name: nftables.TypeIP6Addr,
			protocol.name: nftables.TypeEtherType,
		}[f.name])
	}
	if len(all) == 1 {
		return all[0]
	}
	return nftables.MustConcatSetType(all...)
}
