package network

import (
	"net/netip"
	"slices"
	"strings"

	"orrery/internal/network/ends"
	"orrery/internal/network/vxlan"
	"orrery/internal/site"
	"orrery/internal/site/spec"
)

// rules returns the rules of a site's table, in order, for the site's networks on this host, in
// whatever order these are given.
//
// A network is closed: what crosses its bridge's edge and is not let through here is dropped. A
// rule knows the networks of other sites only by the names of their bridges, so the table of one
// site stays as it is whatever other sites come and go.
func rules(networks []spec.Network) []rule {
	networks = slices.SortedFunc(slices.Values(networks),
		func(a, b spec.Network) int { return strings.Compare(a.Name, b.Name) })
	var all []rule
	for _, n := range networks {
		all = append(all, betweenRules(n)...)
	}
	if len(networks) > 0 {
		all = append(all, loopbackRules()...)
	}
	for _, n := range networks {
		all = append(all, wireRules(n)...)
	}
	if len(networks) > 0 {
		all = append(all, othersRules()...)
	}
	for _, n := range networks {
		all = append(all, unseenRules(n)...)
		all = append(all, seenRules(n)...)
	}
	for _, n := range networks {
		all = append(all, withinRule(n))
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
	if site.KindOf(n.Kind).Routed {
		return linkMatch{name: site.RoutedPrefix(n.Site, n.Name), prefix: true}
	}
	return linkMatch{name: n.Bridge}
}

// Links that are the bridges of networks, of any site, and those that are not; and the links to
// routers of networks.
var (
	anyNetwork = linkMatch{name: bridgePrefix, prefix: true}
	noNetwork  = linkMatch{name: bridgePrefix, prefix: true, not: true}
	anyRouter  = linkMatch{name: ends.RouterPrefix, prefix: true}
	loopback   = linkMatch{name: "lo", first: true}
)

// What a client of DHCP sends that has no address yet.
var (
	nobody    = netip.MustParsePrefix("0.0.0.0/32")
	everybody = netip.MustParsePrefix("255.255.255.255/32")
	dhcp      = site.Opening{Proto: "udp", First: 67, Last: 67}
)

// unseenRules keep what is on a bridge where the host has no address from being tracked as
// connections. Its nodes may have the addresses of nodes elsewhere, and what they say must not
// count for those, nor end connections of theirs.
func unseenRules(n spec.Network) []rule {
	if n.HostAddress() != "" {
		return nil
	}
	return []rule{{network: n.Name, chain: prerouting, why: "unseen", in: on(n), verdict: untracked}}
}

// ofHost stands for the network in rules that are of none.
const ofHost = "(host)"

// loopbackRules let pass what the host says to itself, before any other rule looks at it.
func loopbackRules() []rule {
	return []rule{
		{network: ofHost, chain: prerouting, why: "loopback", in: loopback, verdict: accept},
		{network: ofHost, chain: input, why: "loopback", in: loopback, verdict: accept},
	}
}

// othersRules let pass at once what is no business of ours: most of what a host hears.
func othersRules() []rule {
	not := linkMatch{name: ownPrefix, prefix: true, not: true}
	return []rule{
		{network: ofHost, chain: prerouting, why: "not ours", in: not, verdict: accept},
		{network: ofHost, chain: input, why: "not ours", in: not, verdict: accept},
	}
}

// untrackedRules keep the host's own loopback from being tracked, which would be for nobody's sake.
// What goes out untracked comes in untracked.
func untrackedRules() []rule {
	return []rule{{network: ofHost, chain: output, why: "loopback", out: loopback, verdict: notrack}}
}

// wireRules are for a network that is joined with a bridge of the host. On that, the host may have
// addresses, and nodes reach them as if they were on a network whose gateway these are: to ask
// whether the host is there, to answer it, and to use what is open to them. The host passes on
// nothing for them: who shall does so by nat.
func wireRules(n spec.Network) []rule {
	if n.Uplink.Bridge == "" {
		return nil
	}
	on := rule{network: n.Name, chain: input, in: linkMatch{name: n.Uplink.Bridge}, mark: vxlan.Mark(n),
		source: subnet(n), verdict: accept}
	answers, ping, closed := on, on, on
	answers.why, answers.replies = "wire answers", true
	ping.why, ping.ask = "wire ping", true
	closed.why, closed.source, closed.verdict = "wire closed", netip.Prefix{}, drop
	all := append([]rule{answers}, bounded(ping)...)
	ports, _ := opened(n) // check has seen that they can be read
	for _, port := range ports {
		open := on
		open.why, open.port = "wire open", port
		all = append(all, bounded(open)...)
	}
	passedOn := closed
	passedOn.chain = forward
	return append(all, closed, passedOn)
}

// seenRules are for networks where the host has an address. They drop what is forged, before there
// is a connection that it could count for, and leave untracked what needs no connection: what asks
// whether the gateway is there, and, where br_netfilter or a routed network shows it here, what
// nodes say to one another.
func seenRules(n spec.Network) []rule {
	if n.HostAddress() == "" {
		return nil
	}
	var all []rule
	if !site.KindOf(n.Kind).Routed {
		// Nearly all that nodes send: it need not meet the other rules.
		all = append(all, rule{network: n.Name, chain: prerouting, why: "within", in: on(n), source: subnet(n),
			dest: subnet(n), except: gateway(n), verdict: untracked})
	}
	if site.KindOf(n.Kind).Bridged { // a client of DHCP among the nodes; the host itself is no server (inputRules)
		all = append(all, rule{network: n.Name, chain: prerouting, why: "asks for an address", in: on(n), source: nobody,
			dest: everybody, port: dhcp, verdict: untracked})
	}
	forged := rule{network: n.Name, chain: prerouting, why: "forged", in: on(n), source: subnet(n), forged: true,
		verdict: drop}
	if n.Spoof {
		forged.verdict = notrack // br_netfilter shows here what nodes say to one another, which they may
	}
	all = append(all, forged)
	if site.KindOf(n.Kind).Routed {
		// A link stands for an address. So says rp_filter, too, unless the host's own settings make it loose.
		all = append(all, rule{network: n.Name, chain: prerouting, why: "forged", in: on(n), astray: true, verdict: drop})
	}
	return append(all,
		rule{network: n.Name, chain: prerouting, why: "ping", in: on(n), dest: gateway(n), ask: true, verdict: notrack},
		rule{network: n.Name, chain: prerouting, why: "gateway", in: on(n), dest: gateway(n), verdict: accept},
		rule{network: n.Name, chain: prerouting, why: "within", in: on(n), dest: subnet(n), verdict: untracked},
		rule{network: n.Name, chain: prerouting, why: "within", in: on(n), ipv6: true, verdict: untracked})
}

// maxConnections is how many connections of its own making a network may have through the host at a
// time, by each of the ways that lead out of it. All networks and the host itself share one table
// of the kernel's (nf_conntrack_max), which a node must not fill.
const maxConnections = 4096

// bounded puts before a rule that lets new connections pass one that drops those beyond maxConnections.
func bounded(r rule) []rule {
	most := r
	most.why, most.beyond, most.verdict = r.why+" bound", maxConnections, drop
	return []rule{most, r}
}

// astrayRules keep what is meant for a network from going elsewhere: to one without a gateway, and
// to any whose bridge is not up, the host has no route, and would send that to the world. The
// networks of twins and quarantines are meant by those of their own site only: to all others their
// addresses are those of the original, wherever that is.
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
		case o.Router:
			all = append(all, astray(uplink(o)))
		case o.NAT:
			all = append(all, astray(on(o)))
		}
	}
	return all
}

// isCopy reports whether a site's networks are those of a twin or a quarantine (site.Key, site.Quarantine).
func isCopy(key string) bool { return strings.Contains(key, ".") }

// withinRule lets nodes of a network speak to one another: with br_netfilter the kernel shows
// frames between two ports of a bridge here, too. It comes before all others, as that is most of
// what nodes send.
func withinRule(n spec.Network) rule {
	return rule{network: n.Name, chain: forward, why: "within", in: on(n), out: on(n), verdict: accept}
}

func forwardRules(n spec.Network) []rule {
	var all []rule
	if n.Router {
		all = append(all, uplinkRules(n)...)
	} else if n.NAT {
		all = append(all, linkLocalRules(n, on(n))...)
		// With the source spelt out, what cannot be masqueraded (forged, or IPv6) does not get out.
		all = append(all, bounded(rule{network: n.Name, chain: forward, why: "out", in: on(n), out: noNetwork,
			source: subnet(n), verdict: accept})...)
		all = append(all, rule{network: n.Name, chain: forward, why: "replies", in: noNetwork, out: on(n), replies: true,
			verdict: accept})
	}
	return append(all,
		rule{network: n.Name, chain: forward, why: "closed", in: on(n), verdict: drop},
		rule{network: n.Name, chain: forward, why: "closed", out: on(n), verdict: drop})
}

// linkLocalRules keep a network from what the host has at link-local addresses (RFC 3927), which no
// router passes on: there clouds tell hosts of themselves, their keys included.
func linkLocalRules(n spec.Network, in linkMatch) []rule {
	if n.Metadata {
		return nil
	}
	return []rule{{network: n.Name, chain: forward, why: "link-local", in: in, dest: transfers, verdict: drop}}
}

// uplinkRules let a network's router reach the world, but no network of this host.
func uplinkRules(n spec.Network) []rule {
	all := []rule{
		{network: n.Name, chain: forward, why: "foreign network", in: uplink(n), out: anyNetwork, verdict: drop},
		{network: n.Name, chain: forward, why: "foreign router", in: uplink(n), out: anyRouter, verdict: drop},
	}
	all = append(all, linkLocalRules(n, uplink(n))...)
	all = append(all, bounded(rule{network: n.Name, chain: forward, why: "out", in: uplink(n), source: transfers,
		verdict: accept})...)
	return append(all,
		rule{network: n.Name, chain: forward, why: "replies", in: noNetwork, out: uplink(n), replies: true, verdict: accept},
		rule{network: n.Name, chain: forward, why: "closed", in: uplink(n), verdict: drop},
		rule{network: n.Name, chain: forward, why: "closed", out: uplink(n), verdict: drop})
}

// gatewayRules let the network's own nodes ask their gateway whether it is there, answer it and use
// what of the host is open to them, and those of no other network.
func gatewayRules(n spec.Network) []rule {
	if n.HostAddress() == "" {
		return nil
	}
	gateway := gateway(n)
	all := []rule{
		{network: n.Name, chain: input, why: "answers", in: on(n), source: subnet(n), dest: gateway, replies: true,
			verdict: accept},
		{network: n.Name, chain: input, why: "ping", in: on(n), source: subnet(n), dest: gateway, ask: true, verdict: accept},
	}
	all = append(all, openRules(n, gateway)...)
	// What the host asked of a node of another network is answered to that network's gateway, so
	// answers need no way here.
	return append(all, rule{network: n.Name, chain: input, why: "foreign gateway", in: anyNetwork, dest: gateway,
		verdict: drop})
}

// openRules let nodes use what of the host is open to them, at an address of its or, if it is the
// zero Prefix, at all.
func openRules(n spec.Network, at netip.Prefix) []rule {
	ports, _ := opened(n) // check has seen that they can be read
	var all []rule
	for _, port := range ports {
		all = append(all, bounded(rule{network: n.Name, chain: input, why: "open", in: on(n), source: subnet(n), dest: at,
			port: port, verdict: accept})...)
	}
	return all
}

// opened returns what of the host the nodes of a network may use.
func opened(n spec.Network) ([]site.Opening, error) {
	return site.ParseOpenings(splitComma(n.Host))
}

// splitComma returns the words of a list; of "" there are none.
func splitComma(list string) []string {
	if list == "" {
		return nil
	}
	return strings.Split(list, ",")
}

// inputRules let nodes answer the host, if it has an address among them. Where a way leads out of
// the network, what is open to its nodes is so at the host's outer addresses, too, where a name
// server or a package cache may be. Not so one that leads out by a router of its own.
func inputRules(n spec.Network) []rule {
	closed := rule{network: n.Name, chain: input, why: "closed", in: on(n), verdict: drop}
	if n.Router {
		return []rule{closed, {network: n.Name, chain: input, why: "closed", in: uplink(n), verdict: drop}}
	}
	if n.Gateway == "" {
		return []rule{closed}
	}
	all := []rule{{network: n.Name, chain: input, why: "answers", in: on(n), source: subnet(n), replies: true,
		verdict: accept}}
	if n.NAT {
		all = append(all, openRules(n, netip.Prefix{})...)
		all = append(all, bounded(rule{network: n.Name, chain: input, why: "ping", in: on(n), source: subnet(n), ask: true,
			verdict: accept})...)
	}
	return append(all, closed)
}

// natRules masquerade what leaves the host. What the host sends to itself does not leave, nor what
// stays on the bridge and is only shown here by br_netfilter.
func natRules(n spec.Network) []rule {
	if !n.NAT {
		return nil
	}
	if n.Router {
		return []rule{{network: n.Name, chain: postrouting, why: "nat", in: uplink(n), out: noNetwork, source: transfers,
			verdict: masquerade}}
	}
	return []rule{
		{network: n.Name, chain: postrouting, why: "loopback", out: linkMatch{name: "lo"}, verdict: accept},
		{network: n.Name, chain: postrouting, why: "nat", out: noNetwork, source: subnet(n), verdict: masquerade},
	}
}

func subnet(n spec.Network) netip.Prefix { return netip.MustParsePrefix(n.Subnet).Masked() }

// gateway returns the gateway's address alone.
func gateway(n spec.Network) netip.Prefix {
	return netip.PrefixFrom(netip.MustParsePrefix(n.Gateway).Addr(), 32)
}
