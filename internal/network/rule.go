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
	prerouting  = "prerouting"
	output      = "output"
	forward     = "forward"
	input       = "input"
	postrouting = "postrouting"
)

var chainNames = []string{prerouting, output, forward, input, postrouting}

// What a rule does with a packet.
const (
	accept     = "accept"
	drop       = "drop"
	masquerade = "masquerade"
	notrack    = "notrack"
	untracked  = "notrack accept" // and no other rule of the chain looks at it
)

// A rule is one of a table, as data.
type rule struct {
	network string // that it is of
	chain   string
	why     string
	in, out linkMatch
	between between
	source  netip.Prefix // the zero Prefix: any
	forged  bool         // only from sources that are not source
	astray  bool         // only from sources to which the way is not the one by which the packet came
	mark    uint32       // only what has this mark; 0: any
	passing bool         // only what is not for an address of this host
	ipv6    bool
	dest    netip.Prefix
	except  netip.Prefix // a part of dest that is not meant
	ask     bool         // only what asks whether somebody is there (ping)
	port    site.Opening // the zero Opening: any
	replies bool         // only of connections that are there already, and errors about them
	beyond  uint32       // only new connections, when there are more than so many that this rule has seen; 0: all
	verdict string
}

// A linkMatch says by which link a packet comes or goes; the zero linkMatch: by any.
type linkMatch struct {
	name   string
	prefix bool // all links whose names begin with name
	not    bool
	first  bool // the link of index 1, which every namespace has: numbers are compared faster than names
}

// String returns the match as nft(8) does, behind "iif" or "oif".
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

// String returns the rule as nft(8) does.
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
	if r.except.IsValid() {
		words = append(words, "ip daddr != "+r.except.String())
	}
	if r.ask {
		words = append(words, "icmp type echo-request")
	}
	if r.port != (site.Opening{}) {
		proto, ports, _ := strings.Cut(r.port.String(), "/")
		words = append(words, proto+" dport "+ports)
	}
	if r.replies {
		words = append(words, "ct state established,related")
	}
	if r.beyond > 0 {
		words = append(words, fmt.Sprintf("ct state new ct count over %d", r.beyond))
	}
	return strings.Join(append(words, r.verdict), " ")
}

// comment goes with the rule into the kernel. It tells those who list the rules what it is for; and
// by the digest Observe sees whether the rule is the one that belongs there.
func (r rule) comment() string {
	return fmt.Sprintf("%s: %s (%s)", r.network, r.why, spec.DigestBytes([]byte(r.String()))[:8])
}
