package clash

import (
	"net/netip"
	"slices"

	"orrery/internal/observe"
	"orrery/internal/problem"
	"orrery/internal/site/spec"
)

// PublishedTwice returns the problem that two nodes of a site publish the same port of a host, or
// nil. The lists may be the same.
func PublishedTwice(h *observe.Host, some, others []spec.Published) *problem.Problem {
	for _, a := range some {
		for _, b := range others {
			if a != b && a.Overlaps(b.Publish) {
				return problem.New(problem.Mistake, "host %s: port %s of node %s is already published by node %s", h.Name,
					a.Ports, a.Node, b.Node).At("site.toml").
					Try("give each its own port, or place the nodes on different hosts with host = …")
			}
		}
	}
	return nil
}

// PublishedTaken returns why a plan must not lead ports of a host to nodes of a network, or nil:
// another site has them, a program listens there, or the host does not have the address. Ports that
// were published before are not checked again. at are the host's addresses, or none if they are
// unknown.
func PublishedTaken(n *spec.Network, before string, around *observe.HostNetworking,
	at []observe.Address) *problem.Problem {
	if p := PublishedElsewhere(n, around.Networks); p != nil {
		return p
	}
	old, _ := spec.ParsePublished(before)
	for _, p := range n.AllPublished() {
		if slices.Contains(old, p) {
			continue
		}
		here := func(a observe.Address) bool { return isAt(a, p) }
		if p.Address.IsValid() && len(at) > 0 && !slices.ContainsFunc(at, here) {
			return problem.New(problem.Mistake, "node %s publishes port %s at %s, which is not an address of the host",
				p.Node, p.Ports, p.Address).
				Try("name one of its addresses (ip address lists them), or none for all of them")
		}
		for _, l := range around.Listeners {
			if l.Meets(p.Publish) {
				return problem.New(problem.Unable, "port %s of node %s is in use: a program of the host listens at %s", p.Ports,
					p.Node, netip.AddrPortFrom(l.Address, l.Port)).
					Try("publish another port, or stop the program: ss -%slnp 'sport = :%d' names it", p.Ports.Proto[:1], l.Port)
			}
		}
	}
	return nil
}

// maxTranslated is how many ports of a host may have other numbers on the nodes of a network. Each of
// them is two rules, and the kernel takes all rules of a site at once.
const maxTranslated = 4096

// PublishedElsewhere returns the problem that another site on the host publishes a port of a network,
// or that these are too many, or nil.
func PublishedElsewhere(n *spec.Network, others []spec.Network) *problem.Problem {
	mine, translated := n.AllPublished(), 0
	for _, p := range mine {
		if p.Translates() {
			translated += int(p.Ports.Last-p.Ports.First) + 1
		}
	}
	if translated > maxTranslated {
		return problem.New(problem.Mistake,
			"network %s: its nodes publish %d ports whose numbers differ on the host; the maximum is %d", n.Name, translated,
			maxTranslated).Try("publish ranges with the same numbers, such as \"8000-8063:8000-8063\"")
	}
	for i := range others {
		o := &others[i]
		for _, other := range o.PublishedExcept(func(string) bool { return o.Site == n.Site }) {
			for _, p := range mine {
				if other.Overlaps(p.Publish) {
					return problem.New(problem.Unable, "port %s of node %s is already published by node %s of site %s",
						p.Ports, p.Node, other.Node, o.Site).
						Try("publish another port, or take site %s down first", o.Site)
				}
			}
		}
	}
	return nil
}

func isAt(a observe.Address, p spec.Published) bool {
	prefix, err := netip.ParsePrefix(a.Prefix)
	return err == nil && prefix.Addr() == p.Address
}
