package network

import (
	"fmt"
	"net/netip"
	"strings"

	"orrery/internal/site"
	"orrery/internal/site/spec"
)

// The chains of a table.
const (
	prerouting   = "prerouting"
	publish      = "publish" // what comes from other machines to ports that lead to nodes
	output       = "output"
	publishLocal = "publish-local" // what the host itself sends there
	forward      = "forward"
	input        = "input"
	postrouting  = "postrouting"
)

var chainNames = []string{prerouting, publish, output, publishLocal, forward, input, postrouting}

// The verdicts of rules.
const (
	accept     = "accept"
	drop       = "drop"
	masquerade = "masquerade"
	translate  = "dnat ip to" // followed by rule.to
	notrack    = "notrack"
	untracked  = "notrack accept" // no other rule of the chain sees it
)

// A rule is a rule of a table, as data.
type rule struct {
	network string // network the rule is for
	chain   string
	why     string
	in, out linkMatch
	between interHostMatch
	source  netip.Prefix // zero: any
	forged  bool         // match sources other than source
	astray  bool         // match sources that are not routed back through the incoming link
	mark    uint32       // match packets with this mark, or all if 0
	passing bool         // match packets that are not for an address of this host
	local   bool         // match packets that are for an address of this host
	ipv6    bool
	dest    netip.Prefix
	except  netip.Prefix   // part of dest to leave out
	ask     bool           // match pings
	port    site.PortRange // zero: any
	replies bool           // match packets of existing connections, and errors about them
	// translated matches packets of connections whose destination was translated, by this table or by
	// another program.
	translated bool
	beyond     uint32 // match new connections beyond this number seen by this rule, or all if 0
	verdict    string
	to         netip.AddrPort // for translate; the port is 0 if it stays
	record     string         // the spec.Published that the rule carries out, which the kernel stores with it, or ""
}

// A linkMatch matches the link on which a packet arrives or leaves. The zero linkMatch matches any.
type linkMatch struct {
	name   string
	prefix bool // match all links whose names begin with name
	not    bool
	first  bool // the link of index 1, which every namespace has; indexes compare faster than names
}

// String returns the match in the syntax of nft(8), after "iif" or "oif".
func (m linkMatch) String() string {
	if m.first {
		return fmt.Sprintf(" %q", m.name)
	}
	not, star := "", ""
	if m.not {
		not = "!= "
	}
	if m.prefix {
		star = "*"
	}
	return fmt.Sprintf("name %s\"%s%s\"", not, m.name, star)
}

// String returns the rule in the syntax of nft(8).
func (r rule) String() string {
	var words []string
	if r.in.name != "" {
		words = append(words, "iif"+r.in.String())
	}
	if r.out.name != "" {
		words = append(words, "oif"+r.out.String())
	}
	if r.mark != 0 {
		words = append(words, fmt.Sprintf("meta mark 0x%08x", r.mark))
	}
	words = append(words, r.between.words()...)
	if r.ipv6 {
		words = append(words, "meta nfproto ipv6")
	}
	if r.source.IsValid() && r.forged {
		words = append(words, "ip saddr != "+r.source.String())
	} else if r.source.IsValid() {
		words = append(words, "ip saddr "+r.source.String())
	}
	if r.astray {
		words = append(words, "fib saddr . iif oif missing")
	}
	if r.dest.IsValid() {
		words = append(words, "ip daddr "+r.dest.String())
	}
	if r.passing {
		words = append(words, "fib daddr type != local")
	}
	if r.local {
		words = append(words, "fib daddr type local")
	}
	if r.except.IsValid() {
		words = append(words, "ip daddr != "+r.except.String())
	}
	if r.ask {
		words = append(words, "icmp type echo-request")
	}
	if r.port != (site.PortRange{}) {
		proto, ports, _ := strings.Cut(r.port.String(), "/")
		words = append(words, proto+" dport "+ports)
	}
	if r.replies {
		words = append(words, "ct state established,related")
	}
	if r.translated {
		words = append(words, "ct status dnat")
	}
	if r.beyond > 0 {
		words = append(words, fmt.Sprintf("ct state new ct count over %d", r.beyond))
	}
	words = append(words, r.verdict)
	switch {
	case r.verdict == translate && r.to.Port() == 0:
		words = append(words, r.to.Addr().String())
	case r.verdict == translate:
		words = append(words, r.to.String())
	}
	return strings.Join(words, " ")
}

// comment returns the comment that the kernel stores with the rule. It describes the rule's purpose
// to people who list the rules. Observe uses its digest to check whether the rule is the expected
// one.
func (r rule) comment() string {
	return fmt.Sprintf("%s: %s (%s)", r.network, r.why, spec.DigestBytes([]byte(r.String()))[:8])
}
