package network

import (
	"net/netip"
	"slices"
	"strings"

	"orrery/internal/site"
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
	for _, n := range networks {
		all = append(all, unseenRules(n)...)
	}
	for _, n := range networks {
		all = append(all, astrayRules(n, networks)...)
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

// on is the link by which what is from or for the nodes of a network passes, or one for each of them.
func on(n spec.Network) linkMatch {
	if n.Kind == site.Routed {
		return linkMatch{name: routedPrefix(n), prefix: true}
	}
	return linkMatch{name: n.Bridge}
}

// Links that are the bridges of networks, of any site, and those that are not; and the links to routers of networks.
var (
	anyNetwork = linkMatch{name: bridgePrefix, prefix: true}
	noNetwork  = linkMatch{name: bridgePrefix, prefix: true, not: true}
	anyOutlet  = linkMatch{name: outletPrefix, prefix: true}
)

// unseenRules keep what is on a bridge where the host has no address from being tracked as connections. Its nodes may have the
// addresses of nodes elsewhere, and what they say must not count for those, nor end connections of theirs.
func unseenRules(n spec.Network) []rule {
	if hostAddress(n) != "" {
		return nil
	}
	return []rule{{network: n.Name, chain: prerouting, why: "unseen", in: on(n), verdict: notrack}}
}

// astrayRules keep what is meant for a network from going elsewhere: to one without a gateway, and to any whose bridge is not up, the host
// has no route, and would send that to the world. The networks of twins and quarantines are meant by those of their own site only: to all
// others their addresses are those of the original, wherever that is.
func astrayRules(n spec.Network, networks []spec.Network) []rule {
	astray := func(from linkMatch) rule {
		return rule{network: n.Name, chain: forward, why: "astray", in: from, out: noNetwork, dest: subnet(n), verdict: drop}
	}
	if !isCopy(n.Site) {
		return []rule{astray(anyNetwork)}
	}
	var all []rule
	for _, o := range networks {
		switch {
		case o.Outlet:
			all = append(all, astray(uplink(o)))
		case o.NAT:
			all = append(all, astray(on(o)))
		}
	}
	return all
}

// isCopy reports whether a site's networks are those of a twin or a quarantine (site.Key, site.Quarantine).
func isCopy(key string) bool { return strings.Contains(key, ".") }

func forwardRules(n spec.Network) []rule {
	// With br_netfilter the kernel shows frames between two nodes of a bridge here, too.
	all := []rule{{network: n.Name, chain: forward, why: "within", in: on(n), out: on(n), verdict: accept}}
	if n.Outlet {
		all = append(all, outletRules(n)...)
	} else if n.NAT {
		all = append(all,
			// With the source spelt out, what cannot be masqueraded (forged, or IPv6) does not get out.
			rule{network: n.Name, chain: forward, why: "out", in: on(n), out: noNetwork, source: subnet(n), verdict: accept},
			rule{network: n.Name, chain: forward, why: "replies", in: noNetwork, out: on(n), replies: true, verdict: accept})
	}
	return append(all,
		rule{network: n.Name, chain: forward, why: "closed", in: on(n), verdict: drop},
		rule{network: n.Name, chain: forward, why: "closed", out: on(n), verdict: drop})
}

// outletRules let a network's router reach the world, but no network of this host.
func outletRules(n spec.Network) []rule {
	return []rule{
		{network: n.Name, chain: forward, why: "foreign network", in: uplink(n), out: anyNetwork, verdict: drop},
		{network: n.Name, chain: forward, why: "foreign outlet", in: uplink(n), out: anyOutlet, verdict: drop},
		{network: n.Name, chain: forward, why: "out", in: uplink(n), source: transfers, verdict: accept},
		{network: n.Name, chain: forward, why: "replies", in: noNetwork, out: uplink(n), replies: true, verdict: accept},
		{network: n.Name, chain: forward, why: "closed", in: uplink(n), verdict: drop},
		{network: n.Name, chain: forward, why: "closed", out: uplink(n), verdict: drop},
	}
}

// gatewayRules let the network's own nodes reach its gateway, and those of no other network.
func gatewayRules(n spec.Network) []rule {
	if hostAddress(n) == "" {
		return nil
	}
	gateway := gateway(n)
	return []rule{
		{network: n.Name, chain: input, why: "gateway", in: on(n), dest: gateway, verdict: accept},
		// What the host asked of a node of another network is answered to that network's gateway, so replies need no way here.
		{network: n.Name, chain: input, why: "foreign gateway", in: anyNetwork, dest: gateway, verdict: drop},
	}
}

// inputRules let nodes answer the host, if it has an address among them; a network that leads out also leads to the host's own outer
// addresses, where a name server or a package cache may be. Not so one that leads out by a router of its own.
func inputRules(n spec.Network) []rule {
	closed := rule{network: n.Name, chain: input, why: "closed", in: on(n), verdict: drop}
	if n.Outlet {
		return []rule{closed, {network: n.Name, chain: input, why: "closed", in: uplink(n), verdict: drop}}
	}
	if n.Gateway == "" {
		return []rule{closed}
	}
	all := []rule{{network: n.Name, chain: input, why: "replies", in: on(n), replies: true, verdict: accept}}
	if n.NAT {
		all = append(all, rule{network: n.Name, chain: input, why: "host", in: on(n), source: subnet(n), verdict: accept})
	}
	return append(all, closed)
}

// natRules masquerade what leaves the host. What the host sends to itself does not leave, nor what stays on the bridge
// and is only shown here by br_netfilter.
func natRules(n spec.Network) []rule {
	if !n.NAT {
		return nil
	}
	if n.Outlet {
		return []rule{{network: n.Name, chain: postrouting, why: "nat", in: uplink(n), out: noNetwork, source: transfers, verdict: masquerade}}
	}
	return []rule{
		{network: n.Name, chain: postrouting, why: "loopback", out: linkMatch{name: "lo"}, verdict: accept},
		{network: n.Name, chain: postrouting, why: "nat", out: noNetwork, source: subnet(n), verdict: masquerade},
	}
}

func subnet(n spec.Network) netip.Prefix { return netip.MustParsePrefix(n.Subnet).Masked() }

// gateway gives the gateway's address alone.
func gateway(n spec.Network) netip.Prefix {
	return netip.PrefixFrom(netip.MustParsePrefix(n.Gateway).Addr(), 32)
}
