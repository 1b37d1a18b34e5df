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

// PublishedTaken returns why a host cannot lead ports to nodes of a network, or nil: another site has
// them, a program listens there, or the host does not have the address. Ports that were published
// before are not checked again. at are the host's addresses, or none if they are unknown.
func PublishedTaken(n *spec.Network, before string, around *observe.HostNetworking,
	at []observe.Address) *problem.Problem {
	old, _ := spec.ParsePublished(before)
	for _, p := range n.PublishedExcept(func(string) bool { return false }) {
		if slices.Contains(old, p) {
			continue
		}
		here := func(a observe.Address) bool { return isAt(a, p) }
		if p.Address.IsValid() && len(at) > 0 && !slices.ContainsFunc(at, here) {
			return problem.New(problem.Mistake, "node %s publishes port %s at %s, which is not an address of the host",
				p.Node, p.Ports, p.Address).
				Try("name one of its addresses (ip address lists them), or none for all of them")
		}
		for i := range around.Networks {
			o := &around.Networks[i]
			for _, other := range o.PublishedExcept(func(string) bool { return o.Site == n.Site }) {
				if other.Overlaps(p.Publish) {
					return problem.New(problem.Unable, "port %s of node %s is already published by node %s of site %s",
						p.Ports, p.Node, other.Node, o.Site).
						Try("publish another port, or take site %s down first", o.Site)
				}
			}
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

func isAt(a observe.Address, p spec.Published) bool {
	prefix, err := netip.ParsePrefix(a.Prefix)
	return err == nil && prefix.Addr() == p.Address
}
