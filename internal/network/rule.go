package network

import (
	"fmt"
	"net/netip"
	"strings"

	"orrery/internal/site/spec"
)

// The chains of a table.
const (
	prerouting  = "prerouting"
	forward     = "forward"
	input       = "input"
	postrouting = "postrouting"
)

var chainNames = []string{prerouting, forward, input, postrouting}

// What a rule does with a packet.
const (
	accept     = "accept"
	drop       = "drop"
	masquerade = "masquerade"
	notrack    = "notrack"
)

// A rule is one of a table, as data.
type rule struct {
	network string // that it is of
	chain   string
	why     string
	in, out linkMatch
	source  netip.Prefix // the zero Prefix: any
	dest    netip.Prefix
	replies bool // only of connections that are there already, and errors about them
	verdict string
}

// A linkMatch says by which link a packet comes or goes; the zero linkMatch: by any.
type linkMatch struct {
	name   string
	prefix bool // all links whose names begin with name
	not    bool
}

// String gives the match as nft(8) does.
func (m linkMatch) String() string {
	not, star := "", ""
	if m.not {
		not = "!= "
	}
	if m.prefix {
		star = "*"
	}
	return fmt.Sprintf("%s\"%s%s\"", not, m.name, star)
}

// String gives the rule as nft(8) does.
func (r rule) String() string {
	var words []string
	if r.in.name != "" {
		words = append(words, "iifname "+r.in.String())
	}
	if r.out.name != "" {
		words = append(words, "oifname "+r.out.String())
	}
	if r.source.IsValid() {
		words = append(words, "ip saddr "+r.source.String())
	}
	if r.dest.IsValid() {
		words = append(words, "ip daddr "+r.dest.String())
	}
	if r.replies {
		words = append(words, "ct state established,related")
	}
	return strings.Join(append(words, r.verdict), " ")
}

// comment goes with the rule into the kernel. It tells those who list the rules what it is for; and by the digest Observe sees
// whether the rule is the one that belongs there.
func (r rule) comment() string {
	return fmt.Sprintf("%s: %s (%s)", r.network, r.why, spec.DigestBytes([]byte(r.String()))[:8])
}
