package network

import (
	"net/netip"
	"slices"
	"strings"

	"orrery/internal/site/spec"
)

// rules gives the rules of a site's table, in order, for the site's networks on this host, in whatever order these are given.
//
// A network is closed: what crosses its bridge's edge and is not let through here is dropped. A rule knows
// the networks of other sites only by the names of their bridges, so the table of one site stays as it is whatever
// other sites come and go.
func rules(networks []spec.Network) []rule {
	networks = slices.SortedFunc(slices.Values(networks), func(a, b spec.Network) int { return strings.Compare(a.Name, b.Name) })
	var all []rule
	// The host has no route to a network without a gateway, and would send what is meant for it to the world.
	for _, n := range networks {
		all = append(all, rule{network: n.Name, chain: forward, why: "astray", in: anyNetwork, out: noNetwork, dest: subnet(n), verdict: drop})
	}
	for _, n := range networks {
		all = append(all, forwardRules(n)...)
	}
	// Every gateway is closed to other networks before any network is let through to the rest of the host.
	for _, n := range networks {
		all = append(all, gatewayRules(n)...)
	}
	for _, n := range networks {
		all = append(all, inputRules(n)...)
	}
	for _, n := range networks {
		all = append(all, natRules(n)...)
	}
	return all
}

func on(n spec.Network) linkMatch { return linkMatch{name: n.Bridge} }

// Links that are the bridges of networks, of any site, and those that are not.
var (
	anyNetwork = linkMatch{name: bridgePrefix, prefix: true}
	noNetwork  = linkMatch{name: bridgePrefix, prefix: true, not: true}
)

func forwardRules(n spec.Network) []rule {
	// With br_netfilter the kernel shows frames between two nodes of a bridge here, too.
	all := []rule{{network: n.Name, chain: forward, why: "within", in: on(n), out: on(n), verdict: accept}}
	if n.NAT {
		all = append(all,
			// With the source spelt out, what cannot be masqueraded (forged, or IPv6) does not get out.
			rule{network: n.Name, chain: forward, why: "out", in: on(n), out: noNetwork, source: subnet(n), verdict: accept},
			rule{network: n.Name, chain: forward, why: "replies", in: noNetwork, out: on(n), replies: true, verdict: accept})
	}
	return append(all,
		rule{network: n.Name, chain: forward, why: "closed", in: on(n), verdict: drop},
		rule{network: n.Name, chain: forward, why: "closed", out: on(n), verdict: drop})
}

// gatewayRules let the network's own nodes reach its gateway, and those of no other network.
func gatewayRules(n spec.Network) []rule {
	if n.Gateway == "" {
		return nil
	}
	gateway := netip.PrefixFrom(netip.MustParsePrefix(n.Gateway).Addr(), 32)
	return []rule{
		{network: n.Name, chain: input, why: "gateway", in: on(n), dest: gateway, verdict: accept},
		// What the host asked of a node of another network is answered to that network's gateway, so replies need no way here.
		{network: n.Name, chain: input, why: "foreign gateway", in: anyNetwork, dest: gateway, verdict: drop},
	}
}

// inputRules let nodes answer the host; a network that leads out also leads to the host's own outer addresses, where
// a name server or a package cache may be.
func inputRules(n spec.Network) []rule {
	all := []rule{{network: n.Name, chain: input, why: "replies", in: on(n), replies: true, verdict: accept}}
	if n.NAT {
		return append(all, rule{network: n.Name, chain: input, why: "host", in: on(n), source: subnet(n), verdict: accept},
			rule{network: n.Name, chain: input, why: "closed", in: on(n), verdict: drop})
	}
	return append(all, rule{network: n.Name, chain: input, why: "closed", in: on(n), verdict: drop})
}

// natRules masquerade what leaves the host. What the host sends to itself does not leave, nor what stays on the bridge
// and is only shown here by br_netfilter.
func natRules(n spec.Network) []rule {
	if !n.NAT {
		return nil
	}
	return []rule{
		{network: n.Name, chain: postrouting, why: "loopback", out: linkMatch{name: "lo"}, verdict: accept},
		{network: n.Name, chain: postrouting, why: "nat", out: noNetwork, source: subnet(n), verdict: masquerade},
	}
}

func subnet(n spec.Network) netip.Prefix { return netip.MustParsePrefix(n.Subnet).Masked() }
