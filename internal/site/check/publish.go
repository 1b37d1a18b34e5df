package check

import (
	"cmp"
	"net/netip"
	"slices"

	"orrery/internal/site"
)

// vxlan is the port at which hosts of a site receive frames of networks over hosts (RFC 7348).
var vxlan = site.Publish{Ports: site.PortRange{Proto: "udp", First: 4789, Last: 4789}}

// checkPublish checks the ports that nodes publish: a node must have an address to which its host
// can lead them, and no two nodes of a host may have the same port. Nodes without a declared host on
// a site with several may be on different ones; package plan checks them when they are placed.
func checkPublish(ix *index, found *findings) {
	var all []published
	for n := range each(ix.Nodes) {
		if len(n.Publish) > 0 {
			checkPublishNetwork(ix, found, n)
		}
		for i, p := range n.Publish {
			if p.Ports.Proto == "" {
				continue // it could not be parsed, which is reported
			}
			checkPublishAddress(ix, found, n, i)
			if len(ix.Hosts) > 1 && p.Overlaps(vxlan) {
				found.report(atNode(n, "publish", i), "publish another port of the host",
					"port %s carries the traffic of networks over hosts", vxlan.Ports)
			}
			if n.Host != "" || len(ix.Hosts) < 2 {
				all = append(all, published{n.Name, n.Host, i, p})
			}
		}
	}
	checkPublishOnce(found, all)
}

func checkPublishNetwork(ix *index, found *findings, n *site.Node) {
	key := atNode(n, "publish")
	if len(n.NICs) == 0 {
		found.report(key, "put it on a network with a gateway, or remove publish",
			"node %s publishes ports, but is on no network", n.Name)
		return
	}
	nic, on, ok := ix.DefaultRoute(n)
	switch {
	case !ok:
		if first, known := ix.Network(n.NICs[0].Network); known {
			found.report(key, "add gateway = … to network "+first.Name,
				"node %s publishes ports, but none of its networks has a gateway, so the host has no route to it", n.Name)
		}
	case !on.Routes():
		found.report(key, "remove it: machines on that wire reach the node at "+nic.Address.String()+
			"; or put the node first on a network of which the host is the gateway",
			"node %s publishes ports, but the host is not the gateway of its network %s", n.Name, on.Name)
	}
}

func checkPublishAddress(ix *index, found *findings, n *site.Node, i int) {
	a, key := n.Publish[i].Address, atNode(n, "publish", i)
	switch {
	case !a.IsValid():
	case a.IsUnspecified():
		found.report(key, "leave the address out: the port is then at all addresses of the host",
			"%s is not an address of a host", a)
	case a.IsLoopback():
		found.report(key, "leave the address out, or name one of the host's other addresses; orrery forward "+n.Name+
			":PORT makes a port on loopback",
			"%s is a loopback address, which no port can be published at", a)
	case a.Is6():
		found.report(key, "publish it at an IPv4 address of the host; see Ports of the host in docs/site-file.md",
			"ports cannot be published at the IPv6 address %s, because hosts route only IPv4 to nodes", a)
	case a.IsMulticast() || a == netip.AddrFrom4([4]byte{255, 255, 255, 255}):
		found.report(key, "name an address of the host, or none for all of them", "%s is not an address of a host", a)
	default:
		for on := range each(ix.Networks) {
			if on.Subnet.IsValid() && on.Subnet.Contains(a) && on.Routes() && !on.HasUplink() {
				found.report(key, "name an address at which other machines reach the host, or none for all of them",
					"%s is on network %s of the site, where other machines do not reach the host", a, on.Name)
			}
		}
	}
}

// A published is an entry of a node.
type published struct {
	node, host string
	i          int
	site.Publish
}

// checkPublishOnce reports ports that two nodes of a host publish. Its time is that of sorting.
func checkPublishOnce(found *findings, all []published) {
	slices.SortStableFunc(all, func(a, b published) int {
		return cmp.Or(cmp.Compare(a.Ports.First, b.Ports.First), cmp.Compare(a.node, b.node), cmp.Compare(a.i, b.i))
	})
	type group struct{ host, proto, address string }
	furthest := map[group]*published{} // of those before, the one with the last port
	for k := range all {
		p := &all[k]
		any, own, whole := group{p.host, p.Ports.Proto, "*"}, group{p.host, p.Ports.Proto, p.Address.String()},
			group{p.host, p.Ports.Proto, "all"}
		before := []*published{furthest[any], furthest[own]}
		if !p.Address.IsValid() {
			before = []*published{furthest[whole]}
		}
		for _, other := range before {
			if other == nil || !other.Overlaps(p.Publish) {
				continue
			}
			found.reportConflict(at("node", p.node, "publish", p.i), at("node", other.node, "publish", other.i),
				"give each its own port of the host", "port %s is already published by node %s", p.Ports, other.node)
			break
		}
		places := []group{own, whole}
		if !p.Address.IsValid() {
			places = append(places, any)
		}
		for _, g := range places {
			if furthest[g] == nil || furthest[g].Ports.Last < p.Ports.Last {
				furthest[g] = p
			}
		}
	}
}
