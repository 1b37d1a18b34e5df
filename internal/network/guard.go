package network

import (
	"context"
	"slices"
	"strings"

	"github.com/vishvananda/netlink"

	"orrery/internal/network/ends"
	"orrery/internal/network/ports"
	"orrery/internal/site"
	"orrery/internal/site/spec"
)

// A Port is the host's end of a node's link to a bridge, with what the node may send as there (ports.Node).
type Port struct{ Link, Bridge, MAC, Address, IPv6 string }

// Ports gives the ports of a node.
func Ports(n *spec.Node) []Port {
	var all []Port
	for _, nic := range n.NICs {
		if n.LinkKind(nic).Bridged {
			all = append(all, Port{nic.HostEnd, nic.Bridge, nic.MAC, nic.Address, nic.IPv6})
		}
	}
	return all
}

// Guard holds ports to their addresses, unless their network lets nodes send as others. It comes before the ports are there: what is said here of a
// port holds for its name, whenever the link is made anew and whatever bridge it is moved to. So nothing has to be done at a switch.
func Guard(ctx context.Context, some []Port) error {
	if len(some) == 0 {
		return nil
	}
	return portChanges.do(ctx, len(some), func(g *ports.Table, bridges func() ([]bridge, error)) error {
		all, err := bridges()
		if err != nil {
			return err
		}
		as := make([]ports.Identity, len(some))
		for i, p := range some {
			on := networkOf(p.Bridge, all)
			as[i], err = ports.Identify(p.Link, ports.Node{MAC: p.MAC, Address: p.Address, IPv6: p.IPv6, Protocols: on.Protocols})
			if err != nil {
				return err
			}
		}
		for i, p := range some {
			if networkOf(p.Bridge, all).Spoof {
				delete(g.Held, p.Link)
			} else {
				g.Held[p.Link] = as[i]
			}
		}
		return nil
	})
}

// networkOf returns the network whose bridge has a name, or the zero Network.
func networkOf(name string, all []bridge) spec.Network {
	for _, b := range all {
		if b.marked && b.mark.Bridge == name {
			return b.mark
		}
	}
	return spec.Network{}
}

// Unguard forgets ports that are no more.
func Unguard(ctx context.Context, links []string) error {
	if len(links) == 0 {
		return nil
	}
	return portChanges.do(ctx, len(links), func(g *ports.Table, _ func() ([]bridge, error)) error {
		for _, link := range links {
			delete(g.Held, link)
		}
		return nil
	})
}

// Unguarded reports whether a port of a network's bridge is not guarded as the network wants it.
func Unguarded(n spec.Network) (bool, error) {
	links, err := ends.Whole(netlink.LinkList)
	if err != nil {
		return false, err
	}
	g, err := ports.Open()
	if err != nil {
		return false, err
	}
	return lacks(g, n, links), nil
}

// lacks reports whether a port of a network's bridge is not guarded as the network wants it.
func lacks(g *ports.Table, n spec.Network, links []netlink.Link) bool {
	return slices.ContainsFunc(portsOn(n, links), func(port string) bool {
		as, held := g.Held[port]
		return held == n.Spoof || held && (!g.Whole || !as.Allows(n.Protocols))
	})
}

// portsOn gives the ports of nodes on a network's bridge.
func portsOn(n spec.Network, links []netlink.Link) []string {
	i := slices.IndexFunc(links, func(l netlink.Link) bool { return l.Attrs().Name == site.BridgeName(n.Site, n.Name) })
	if i < 0 {
		return nil
	}
	var all []string
	for _, l := range links {
		if l.Attrs().MasterIndex == links[i].Attrs().Index && strings.HasPrefix(l.Attrs().Name, linkPrefix) {
			all = append(all, l.Attrs().Name)
		}
	}
	return all
}

// settle lets go the ports of a network whose nodes may send as others, and allows those of others the protocols of the
// network. Only Guard, whose caller knows who the nodes are, holds a port that is not held.
func settle(n spec.Network) error {
	links, err := ends.Whole(netlink.LinkList)
	if err != nil {
		return err
	}
	g, err := ports.Open()
	if err != nil || !g.Existing {
		return err
	}
	for _, port := range portsOn(n, links) {
		as, held := g.Held[port]
		if held && n.Spoof {
			delete(g.Held, port)
		} else if held {
			if g.Held[port], err = as.Allow(n.Protocols); err != nil {
				return err
			}
		}
	}
	return g.Commit()
}

// releaseAll takes the table away when there is no network left on this host.
func releaseAll() error {
	g, err := ports.Open()
	if err != nil || !g.Existing {
		return err
	}
	clear(g.Held)
	return g.Commit()
}
