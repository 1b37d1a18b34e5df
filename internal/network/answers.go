package network

import (
	"net/netip"
	"slices"

	"orrery/internal/problem"
	"orrery/internal/site"
	"orrery/internal/site/spec"
)

// What nodes send to an active service at the gateway's address goes to the node of this host that answers, by
// translation of the destination. Both are on one network, so the node would send its answers directly to the
// client, which expects them from the gateway. So the source is translated too: the node sees the gateway as
// the client. It may itself ask the gateway, as before.
//
// The link through which nodes reach the gateway is the bridge or, in the router of a twin, its gate.

// answerRules translate what nodes of a network send to active services. They follow the chains of the table,
// and the rules for forwarding come first there.
func answerRules(n spec.Network, gate linkMatch) []rule {
	var all []rule
	for _, a := range n.AllAnswers() { // check has verified that they can be parsed
		to := netip.PrefixFrom(a.To, 32)
		for _, port := range a.Ports() {
			asked := rule{network: n.Name, chain: publish, why: "service " + a.Kind, in: gate, source: subnet(n),
				dest: gateway(n), port: port, verdict: translate, to: netip.AddrPortFrom(a.To, 0)}
			itself := asked
			itself.why, itself.source, itself.verdict, itself.to = asked.why+" itself", to, accept, netip.AddrPort{}
			passed := rule{network: n.Name, chain: forward, why: asked.why, in: gate, out: gate, source: subnet(n), dest: to,
				port: port, translated: true, verdict: accept}
			hidden := passed
			hidden.chain, hidden.in, hidden.verdict = postrouting, linkMatch{}, masquerade
			all = append(all, itself, asked)
			all = append(all, limitConnections(passed)...)
			all = append(all, hidden)
		}
	}
	if len(all) == 0 {
		return nil
	}
	return append(all, rule{network: n.Name, chain: forward, why: "service answers", in: gate, out: gate, replies: true,
		translated: true, verdict: accept})
}

// checkAnswers returns an error if active services cannot be on a network, before anything is changed.
func checkAnswers(n spec.Network, subnet netip.Prefix) error {
	all, err := spec.ParseAnswers(n.Answers)
	if err != nil {
		return problem.New(problem.Unable, "network %s: its active services cannot be read", n.Name).Because(err)
	}
	for _, a := range all {
		bridged := n.Gateway != "" && site.KindOf(n.Kind).Bridged
		if !bridged || !subnet.Contains(a.To) || netip.PrefixFrom(a.To, 32) == gateway(n) {
			return problem.New(problem.Unable, "network %s: service %s cannot lead to %s", n.Name, a.Kind, a.To)
		}
	}
	return nil
}

// changedAnswers returns the UDP ports of active services that a change of a network has redirected or closed.
func changedAnswers(before, after spec.Network) (all []site.PortRange) {
	old, current := before.AllAnswers(), after.AllAnswers()
	for _, a := range slices.Concat(old, current) {
		if slices.Contains(old, a) && slices.Contains(current, a) {
			continue
		}
		for _, p := range a.Ports() {
			if p.Proto == "udp" {
				all = append(all, p)
			}
		}
	}
	return all
}
