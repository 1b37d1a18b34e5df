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

// rules returns the rules of a site's table, in order, for the site's networks on this host. The
// order of networks does not matter.
//
// A network is closed: a packet that crosses the edge of its bridge is dropped unless a rule here
// accepts it. Rules recognise networks of other sites only by the names of their bridges, so the
// table of one site does not change when other sites come and go.
func rules(networks []spec.Network) []rule {
	networks = slices.SortedFunc(slices.Values(networks),
		func(a, b spec.Network) int { return strings.Compare(a.Name, b.Name) })
	var all []rule
	for _, n := range networks {
		all = append(all, interHostRules(n)...)
	}
	if len(networks) > 0 {
		all = append(all, loopbackRules()...)
	}
	for _, n := range networks {
		all = append(all, hostBridgeRules(n)...)
	}
	if len(networks) > 0 {
		all = append(all, foreignRules()...)
	}
	for _, n := range networks {
		all = append(all, noHostAddressRules(n)...)
		all = append(all, hostAddressRules(n)...)
	}
	for _, n := range networks {
		all = append(all, publishRules(n)...)
	}
	for _, n := range networks {
		if !n.Router {
			all = append(all, answerRules(n, nodeLink(n))...)
		}
	}
	for _, n := range networks {
		all = append(all, intraNetworkRule(n))
	}
	for _, n := range networks {
		all = append(all, strayRules(n, networks)...)
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

// nodeLink matches the link through which all traffic of a network's nodes passes, or each node's link on
// a routed network.
func nodeLink(n spec.Network) linkMatch {
	if site.KindOf(n.Kind).Routed {
		return linkMatch{name: site.RoutedPrefix(n.Site, n.Name), prefix: true}
	}
	return linkMatch{name: n.Bridge}
}

// Links that are bridges of networks, of any site, links that are not, and links to routers of
// networks.
var (
	anyNetwork = linkMatch{name: bridgePrefix, prefix: true}
	noNetwork  = linkMatch{name: bridgePrefix, prefix: true, not: true}
	anyRouter  = linkMatch{name: ends.RouterPrefix, prefix: true}
	loopback   = linkMatch{name: "lo", first: true}
	foreign    = linkMatch{name: ownPrefix, prefix: true, not: true}
)

// The addresses and the port of a DHCP client that has no address yet.
var (
	unspecifiedIPv4 = netip.MustParsePrefix("0.0.0.0/32")
	loopbackIPv4    = netip.MustParsePrefix("127.0.0.0/8")
	broadcastIPv4   = netip.MustParsePrefix("255.255.255.255/32")
	dhcp            = site.PortRange{Proto: "udp", First: 67, Last: 67}
)

// noHostAddressRules exempt traffic on a bridge where the host has no address from connection tracking.
// Its nodes may have the same addresses as nodes elsewhere. Their packets must not count for
// connections of those nodes or end them.
func noHostAddressRules(n spec.Network) []rule {
	if n.HostAddress() != "" {
		return nil
	}
	return []rule{{network: n.Name, chain: prerouting, why: "unseen", in: nodeLink(n), verdict: untracked}}
}

// ofHost is the network's name in rules that belong to no network.
const ofHost = "(host)"

// loopbackRules accept the host's traffic to itself, before any other rule.
func loopbackRules() []rule {
	return []rule{
		{network: ofHost, chain: prerouting, why: "loopback", in: loopback, verdict: accept},
		{network: ofHost, chain: input, why: "loopback", in: loopback, verdict: accept},
	}
}

// foreignRules accept traffic that does not come from Orrery's links, which is most of what a host
// receives.
func foreignRules() []rule {
	not := foreign
	return []rule{
		{network: ofHost, chain: prerouting, why: "not ours", in: not, verdict: accept},
		{network: ofHost, chain: input, why: "not ours", in: not, verdict: accept},
	}
}

// untrackedRules exempt the host's loopback from connection tracking, which no rule needs there.
// What leaves untracked also arrives untracked.
//
// This holds for the addresses of the loopback only. What the host sends to its own other addresses
// also passes the loopback, and may be for a port that leads to a node, of any site.
func untrackedRules() []rule {
	return []rule{
		{network: ofHost, chain: output, why: "loopback", out: loopback, dest: loopbackIPv4, verdict: notrack},
		{network: ofHost, chain: output, why: "loopback", out: loopback, ipv6: true, verdict: notrack},
	}
}

// hostBridgeRules are for a network that is joined with a bridge of the host. The host may have addresses
// on that bridge, and nodes reach them like a gateway of their network. They may ping the host,
// answer it, and use its opened ports. The host forwards nothing for them, since that is what nat
// is for.
func hostBridgeRules(n spec.Network) []rule {
	if n.Uplink.Bridge == "" {
		return nil
	}
	on := rule{network: n.Name, chain: input, in: linkMatch{name: n.Uplink.Bridge}, mark: vxlan.Mark(n),
		source: subnet(n), verdict: accept}
	answers, ping, closed := on, on, on
	answers.why, answers.replies = "wire answers", true
	ping.why, ping.ask = "wire ping", true
	closed.why, closed.source, closed.verdict = "wire closed", netip.Prefix{}, drop
	all := append([]rule{answers}, limitConnections(ping)...)
	ports, _ := openPorts(n) // check has verified that they can be parsed
	for _, port := range ports {
		open := on
		open.why, open.port = "wire open", port
		all = append(all, limitConnections(open)...)
	}
	passedOn := closed
	passedOn.chain = forward
	return append(all, closed, passedOn)
}

// hostAddressRules are for networks where the host has an address. They drop forged packets before these
// can count for a connection. They exempt traffic that needs no connection from tracking: pings of
// the gateway and, where br_netfilter or a routed network shows it to the host, traffic between
// nodes.
func hostAddressRules(n spec.Network) []rule {
	if n.HostAddress() == "" {
		return nil
	}
	var all []rule
	if !site.KindOf(n.Kind).Routed {
		// This is nearly all that nodes send, so it need not meet the other rules.
		all = append(all, rule{network: n.Name, chain: prerouting, why: "within", in: nodeLink(n), source: subnet(n),
			dest: subnet(n), except: gateway(n), verdict: untracked})
	}
	if site.KindOf(n.Kind).Bridged { // DHCP clients among the nodes; the host itself is not a server (inputRules)
		all = append(all, rule{network: n.Name, chain: prerouting, why: "asks for an address", in: nodeLink(n),
			source: unspecifiedIPv4,
			dest:   broadcastIPv4, port: dhcp, verdict: untracked})
	}
	forged := rule{network: n.Name, chain: prerouting, why: "forged", in: nodeLink(n), source: subnet(n), forged: true,
		verdict: drop}
	if n.Spoof {
		forged.verdict = notrack // br_netfilter shows traffic between nodes here, which is allowed
	}
	all = append(all, forged)
	if site.KindOf(n.Kind).Routed {
		// Each link stands for one address. rp_filter also checks this, unless the host's own
		// settings make it loose.
		all = append(all, rule{network: n.Name, chain: prerouting, why: "forged", in: nodeLink(n), astray: true,
			verdict: drop})
	}
	return append(all,
		rule{network: n.Name, chain: prerouting, why: "ping", in: nodeLink(n), dest: gateway(n), ask: true, verdict: notrack},
		rule{network: n.Name, chain: prerouting, why: "gateway", in: nodeLink(n), dest: gateway(n), verdict: accept},
		rule{network: n.Name, chain: prerouting, why: "within", in: nodeLink(n), dest: subnet(n), verdict: untracked},
		rule{network: n.Name, chain: prerouting, why: "within", in: nodeLink(n), ipv6: true, verdict: untracked})
}

// maxConnections is how many connections a network may open through the host at a time, in each
// direction that leads out of it. All networks and the host share the kernel's table
// (nf_conntrack_max), which a node must not fill.
const maxConnections = 4096

// limitConnections adds, before a rule that accepts new connections, a rule that drops those beyond
// maxConnections.
func limitConnections(r rule) []rule {
	most := r
	most.why, most.beyond, most.verdict = r.why+" bound", maxConnections, drop
	return []rule{most, r}
}

// strayRules keep traffic to a network from leaving the host. The host has no route to a network
// without a gateway or with its bridge down, and would send such packets to the outside. For
// networks of twins and quarantines the rules cover only their own site. For all others, these
// addresses belong to the original network, wherever it is.
func strayRules(n spec.Network, networks []spec.Network) []rule {
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
			all = append(all, astray(nodeLink(o)))
		}
	}
	return all
}

// isCopy reports whether a site's networks are those of a twin or a quarantine (site.Key,
// site.Quarantine).
func isCopy(key string) bool { return strings.Contains(key, ".") }

// intraNetworkRule accepts traffic between nodes of a network. With br_netfilter, the kernel also shows
// frames between two ports of a bridge to these rules. The rule comes before the other forward
// rules, since it matches most of what nodes send.
func intraNetworkRule(n spec.Network) rule {
	return rule{network: n.Name, chain: forward, why: "within", in: nodeLink(n), out: nodeLink(n), verdict: accept}
}

func forwardRules(n spec.Network) []rule {
	all := publishedForwardRules(n)
	if n.Router {
		all = append(all, uplinkRules(n)...)
	} else if n.NAT {
		all = append(all, linkLocalRules(n, nodeLink(n))...)
		// Because the source is explicit, packets that cannot be masqueraded (forged ones or IPv6)
		// do not get out.
		all = append(all, limitConnections(rule{network: n.Name, chain: forward, why: "out", in: nodeLink(n), out: noNetwork,
			source: subnet(n), verdict: accept})...)
		all = append(all, rule{network: n.Name, chain: forward, why: "replies", in: noNetwork, out: nodeLink(n),
			replies: true,
			verdict: accept})
	}
	return append(all,
		rule{network: n.Name, chain: forward, why: "closed", in: nodeLink(n), verdict: drop},
		rule{network: n.Name, chain: forward, why: "closed", out: nodeLink(n), verdict: drop})
}

// linkLocalRules block a network from link-local addresses (RFC 3927), which no router forwards.
// Cloud hosts find their metadata there, including keys.
func linkLocalRules(n spec.Network, in linkMatch) []rule {
	if n.Metadata {
		return nil
	}
	return []rule{{network: n.Name, chain: forward, why: "link-local", in: in, dest: transferRange, verdict: drop}}
}

// uplinkRules allow a network's router to reach the outside, but no network of this host. Without NAT it
// reaches nothing.
func uplinkRules(n spec.Network) []rule {
	closed := []rule{{network: n.Name, chain: forward, why: "closed", in: uplink(n), verdict: drop},
		{network: n.Name, chain: forward, why: "closed", out: uplink(n), verdict: drop}}
	if !n.NAT {
		return closed
	}
	all := []rule{
		{network: n.Name, chain: forward, why: "foreign network", in: uplink(n), out: anyNetwork, verdict: drop},
		{network: n.Name, chain: forward, why: "foreign router", in: uplink(n), out: anyRouter, verdict: drop},
	}
	all = append(all, linkLocalRules(n, uplink(n))...)
	all = append(all, limitConnections(rule{network: n.Name, chain: forward, why: "out", in: uplink(n),
		source:  transferRange,
		verdict: accept})...)
	all = append(all,
		rule{network: n.Name, chain: forward, why: "replies", in: noNetwork, out: uplink(n), replies: true, verdict: accept})
	return append(all, closed...)
}

// gatewayRules allow a network's own nodes to ping their gateway, answer it and use the host's
// opened ports. They drop packets to the gateway from other networks.
func gatewayRules(n spec.Network) []rule {
	if n.HostAddress() == "" {
		return nil
	}
	gateway := gateway(n)
	all := []rule{
		{network: n.Name, chain: input, why: "answers", in: nodeLink(n), source: subnet(n), dest: gateway, replies: true,
			verdict: accept},
		{network: n.Name, chain: input, why: "ping", in: nodeLink(n), source: subnet(n), dest: gateway, ask: true,
			verdict: accept},
	}
	all = append(all, openPortRules(n, gateway)...)
	// When the host asks a node of another network, the answer goes to that network's gateway. So
	// answers need no rule here.
	return append(all, rule{network: n.Name, chain: input, why: "foreign gateway", in: anyNetwork, dest: gateway,
		verdict: drop})
}

// openPortRules allow nodes to use the host's opened ports, at one of its addresses or, if at is the
// zero Prefix, at all of them.
func openPortRules(n spec.Network, at netip.Prefix) []rule {
	ports, _ := openPorts(n) // check has verified that they can be parsed
	var all []rule
	for _, port := range ports {
		all = append(all, limitConnections(rule{network: n.Name, chain: input, why: "open", in: nodeLink(n),
			source: subnet(n), dest: at,
			port: port, verdict: accept})...)
	}
	return all
}

// openPorts returns the ports of the host that nodes of a network may use.
func openPorts(n spec.Network) ([]site.PortRange, error) {
	return site.ParsePortRanges(splitComma(n.Host))
}

// splitComma returns the words of a comma-separated list, or nil for "".
func splitComma(list string) []string {
	if list == "" {
		return nil
	}
	return strings.Split(list, ",")
}

// inputRules allow nodes to answer the host, if it has an address on their network. If the network
// has nat, the opened ports can also be used at the host's outer addresses, where a name server or
// a package cache may be. A network with its own router cannot use them.
func inputRules(n spec.Network) []rule {
	closed := rule{network: n.Name, chain: input, why: "closed", in: nodeLink(n), verdict: drop}
	if n.Router {
		return []rule{closed, {network: n.Name, chain: input, why: "closed", in: uplink(n), verdict: drop}}
	}
	if n.Gateway == "" {
		return []rule{closed}
	}
	all := []rule{{network: n.Name, chain: input, why: "answers", in: nodeLink(n), source: subnet(n), replies: true,
		verdict: accept}}
	if n.NAT {
		all = append(all, openPortRules(n, netip.Prefix{})...)
		all = append(all, limitConnections(rule{network: n.Name, chain: input, why: "ping", in: nodeLink(n),
			source: subnet(n), ask: true,
			verdict: accept})...)
	}
	return append(all, closed)
}

// natRules masquerade what leaves the host. Traffic of the host to itself does not leave it.
// Neither does traffic on the bridge that only br_netfilter shows here.
func natRules(n spec.Network) []rule {
	if !n.NAT {
		return nil
	}
	if n.Router {
		return []rule{{network: n.Name, chain: postrouting, why: "nat", in: uplink(n), out: noNetwork, source: transferRange,
			verdict: masquerade}}
	}
	return []rule{
		{network: n.Name, chain: postrouting, why: "loopback", out: linkMatch{name: "lo"}, verdict: accept},
		{network: n.Name, chain: postrouting, why: "nat", out: noNetwork, source: subnet(n), verdict: masquerade},
	}
}

func subnet(n spec.Network) netip.Prefix { return netip.MustParsePrefix(n.Subnet).Masked() }

// gateway returns the gateway's address as a single-address prefix.
func gateway(n spec.Network) netip.Prefix {
	return netip.PrefixFrom(netip.MustParsePrefix(n.Gateway).Addr(), 32)
}
