package suspect

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"orrery/internal/lab/facts"
	"orrery/internal/text/humanize"
)

// If a receiver does not run for hold seconds, which a scheduler may cause, it loses what does not
// fit into its socket buffer.
const (
	bufferSeconds = 0.01
	assumedRate   = 1e9 // bit/s
)

// rmem checks that the socket buffer can hold the traffic of hold seconds.
func rmem(f facts.Facts, s Subject) (seen, cure string) {
	most, err := strconv.ParseFloat(f.Sysctls["net.core.rmem_max"], 64)
	if err != nil {
		return unknownFact, ""
	}
	rate := s.Rate
	if rate == 0 {
		rate = assumedRate
	}
	seen = fmt.Sprintf("net.core.rmem_max of %.0f bytes holds %.2g ms at %.3g Gb/s", most, 1000*8*most/rate, rate/1e9)
	if want := rate / 8 * bufferSeconds; most < want {
		return seen, fmt.Sprintf("sysctl -w net.core.rmem_max=%d", roundUpToPowerOf2(want))
	}
	return seen, ""
}

// roundUpToPowerOf2 returns the smallest power of two, of at least one MiB, that is not below a size.
func roundUpToPowerOf2(size float64) int64 {
	n := int64(1 << 20)
	for float64(n) < size {
		n *= 2
	}
	return n
}

// path returns the known interfaces of a subject.
func path(f facts.Facts, s Subject) []facts.Interface {
	var all []facts.Interface
	for _, name := range s.Links {
		if i, ok := f.Interface(name); ok {
			all = append(all, i)
		}
	}
	return all
}

// bridgeNF reports bridges whose frames pass iptables, where each frame costs the evaluation of
// rules and a conntrack lookup.
func bridgeNF(f facts.Facts, s Subject) (seen, cure string) {
	var on []string
	for _, name := range []string{"iptables", "ip6tables", "arptables"} {
		if f.Sysctls["net.bridge.bridge-nf-call-"+name] == "1" {
			on = append(on, "net.bridge.bridge-nf-call-"+name)
		}
	}
	bridged := s.Bridge || slices.ContainsFunc(path(f, s),
		func(i facts.Interface) bool { return i.Driver == "bridge" || i.Master != "" })
	switch {
	case len(on) == 0:
		return "frames on bridges do not pass iptables", ""
	case s.Kind != "" && !bridged:
		return "no bridge on the path", ""
	}
	return "frames on bridges also pass iptables: " + strings.Join(on, ", "),
		"sysctl -w " + strings.Join(on, "=0 ") + "=0"
}

// mtu compares the MTUs of the interfaces on the path, except loopback.
func mtu(f facts.Facts, s Subject) (seen, cure string) {
	var said []string
	least, most := facts.Interface{}, facts.Interface{}
	for _, i := range path(f, s) {
		if i.Name == "lo" || i.MTU == 0 {
			continue
		}
		said = append(said, fmt.Sprintf("%s %d", i.Name, i.MTU))
		if least.MTU == 0 || i.MTU < least.MTU {
			least = i
		}
		if i.MTU > most.MTU {
			most = i
		}
	}
	if least.MTU == most.MTU {
		return strings.Join(said, ", "), ""
	}
	return "MTUs differ on the path: " + strings.Join(said, ", "),
		fmt.Sprintf("ip link set dev %s mtu %d", least.Name, most.MTU)
}

// offload reports interfaces that join or split packets. The counted packets are then not those on
// the wire, and a veth passes 64 KiB for the cost of one packet.
func offload(f facts.Facts, s Subject) (seen, cure string) {
	short := [][2]string{ // names in the kernel and in ethtool(8)
		{"rx-gro", "gro"}, {"rx-lro", "lro"}, {"tx-generic-segmentation", "gso"}, {"tx-tcp-segmentation", "tso"},
		{"tx-udp-segmentation", "tx-udp-segmentation"}, {"rx-gro-hw", "rx-gro-hw"}, {"rx-gro-list", "rx-gro-list"},
		{"rx-udp-gro-forwarding", "rx-udp-gro-forwarding"},
	}
	var found, cures []string
	for _, i := range path(f, s) {
		var on []string
		for _, o := range short {
			if i.Has(o[0]) {
				on = append(on, o[1])
			}
		}
		if len(on) > 0 {
			found = append(found, i.Name+" ("+strings.Join(on, ", ")+")")
			cures = append(cures, "ethtool -K "+i.Name+" "+strings.Join(on, " off ")+" off")
		}
	}
	if len(found) == 0 {
		return "no packets are merged or split on the path", ""
	}
	return "packets are merged or split by " + strings.Join(found, ", "), strings.Join(cures, "; ")
}

// netfilter reports a place whose packets avoid the host's rules that those of the bare host pass.
func netfilter(f facts.Facts, s Subject) (seen, cure string) {
	n := f.Netfilter
	if !s.Aside || !n.Passed() {
		return "no rules that only packets of the bare host pass", ""
	}
	var parts []string
	if n.Chains > 0 {
		parts = append(parts, fmt.Sprintf("%d chains of %s with %s of nftables", n.Chains,
			humanize.Plural(len(n.Tables), "table"), humanize.Plural(n.Rules, "rule")))
	}
	if len(n.Legacy) > 0 {
		parts = append(parts, "iptables ("+strings.Join(n.Legacy, ", ")+")")
	}
	if n.Tracking {
		parts = append(parts, "connection tracking")
	}
	return "packets of the bare host pass " + strings.Join(parts, ", ") + "; those of this place do not",
		"to measure a bare host without them, take down other sites and the firewall (nft list ruleset)"
}
