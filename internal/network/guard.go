package network

import (
	"context"
	"maps"
	"net/netip"
	"slices"
	"strings"

	"github.com/vishvananda/netlink"

	"orrery/internal/host"
	"orrery/internal/network/ends"
	"orrery/internal/network/ports"
	"orrery/internal/site"
	"orrery/internal/site/spec"
)

// A Port is the host's end of a node's link to a bridge, with what the node may send there
// (ports.Node).
type Port struct {
	Site, Link, Bridge, MAC string
	Addresses               []netip.Prefix
	Moving                  []netip.Addr
}

// Ports returns the ports of a node.
func Ports(n *spec.Node) []Port {
	var all []Port
	for _, nic := range n.NICs {
		if n.LinkKind(nic).Bridged {
			all = append(all, Port{n.Site, nic.HostIfName, nic.Bridge, nic.MAC, nic.Addresses(),
				nic.MovingAddresses()})
		}
	}
	return all
}

// AddAntiSpoof restricts ports to their nodes' addresses, unless their network allows spoofing. It must be
// called before the links are made. The restriction holds for the name of the port until RemoveAntiSpoof,
// however often the link is remade and whichever bridge it is moved to. Guard adds what the table
// lacks, in parallel with other processes. Only if that is not enough, it waits for exclusive
// access in reguard.
func AddAntiSpoof(ctx context.Context, some []Port) error {
	if len(some) == 0 {
		return nil
	}
	unlock, err := lock(ctx, host.Shared) // while no process rewrites the table
	if err != nil {
		return err
	}
	ok, err := tryAddAntiSpoof(some)
	unlock()
	if ok || err != nil {
		return err
	}
	return repairAntiSpoof(ctx, some)
}

func tryAddAntiSpoof(some []Port) (bool, error) {
	want, free, err := identify(some)
	if err != nil {
		return false, err
	}
	return ports.AddPorts(want, free)
}

// repairAntiSpoof is like AddAntiSpoof, but also repairs whatever is wrong with the table.
func repairAntiSpoof(ctx context.Context, some []Port) error {
	unlock, err := lock(ctx, host.Exclusive)
	if err != nil {
		return err
	}
	defer unlock()
	want, free, err := identify(some)
	if err != nil {
		return err
	}
	g, err := ports.Open()
	if err != nil {
		return err
	}
	maps.Copy(g.Held, want)
	for _, port := range free {
		delete(g.Held, port)
	}
	return g.Commit()
}

// identify returns what nodes may send on ports, and the ports whose networks allow spoofing.
func identify(some []Port) (want map[string]ports.Identity, free []string, err error) {
	want, on := map[string]ports.Identity{}, map[string]spec.Network{}
	for _, p := range some {
		if _, ok := on[p.Bridge]; !ok {
			if b, err := findBridge(p.Bridge); err != nil {
				return nil, nil, err
			} else if b != nil {
				on[p.Bridge] = b.mark
			}
		}
		if want[p.Link], err = p.identify(on[p.Bridge]); err != nil {
			return nil, nil, err
		}
		if on[p.Bridge].Spoof {
			delete(want, p.Link)
			free = append(free, p.Link)
		}
	}
	return want, free, nil
}

// identify returns what the node may send on a network.
func (p Port) identify(on spec.Network) (ports.Identity, error) {
	return ports.Identify(p.Link, ports.Node{Site: p.Site, MAC: p.MAC, Addresses: p.Addresses, Moving: p.Moving,
		Protocols: on.Protocols})
}

// RemoveAntiSpoof removes the ports of a site from the table, except those of nodes that still exist and
// those whose links exist.
func RemoveAntiSpoof(ctx context.Context, site string, still []Port) error {
	unlock, err := lock(ctx, host.Exclusive)
	if err != nil {
		return err
	}
	defer unlock()
	g, err := ports.Open()
	if err != nil || !g.Existing {
		return err
	}
	keep := map[string]bool{}
	for _, p := range still {
		keep[p.Link] = true
	}
	maps.DeleteFunc(g.Held, func(port string, as ports.Identity) bool {
		if !as.IsOf(site) || keep[port] {
			return false
		}
		_, err := netlink.LinkByName(port)
		return ends.IsNotFound(err)
	})
	return g.Commit()
}

// lacksAntiSpoof reports whether a port of a network's bridge is not guarded as the network requires.
func lacksAntiSpoof(g *ports.Table, n spec.Network, links []netlink.Link) bool {
	return slices.ContainsFunc(portsOn(n, links), func(port string) bool {
		as, held := g.Held[port]
		return held == n.Spoof || held && (!g.Whole || !as.Allows(n.Protocols))
	})
}

// portsOn returns the ports of nodes on a network's bridge.
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

// updatePorts releases the ports of a network that allows spoofing. On other networks, it allows the
// ports the protocols of the network. If a port of the bridge is not guarded as required, because
// another program has changed the table or a former version made it, settle guards the ports of all
// known nodes again.
func updatePorts(n spec.Network, nodes func() ([]Port, error)) error {
	links, err := ends.ListConsistent(netlink.LinkList)
	if err != nil {
		return err
	}
	g, err := ports.Open()
	if err != nil {
		return err
	}
	on := portsOn(n, links)
	for _, port := range on {
		as, held := g.Held[port]
		if held && n.Spoof {
			delete(g.Held, port)
		} else if held {
			if g.Held[port], err = as.Allow(n.Protocols); err != nil {
				return err
			}
		}
	}
	if lacksAntiSpoof(g, n, links) {
		known, err := nodes()
		if err != nil {
			return err
		}
		for _, p := range known {
			if p.Bridge != n.Bridge && !slices.Contains(on, p.Link) {
				continue
			}
			if g.Held[p.Link], err = p.identify(n); err != nil {
				return err
			}
		}
	}
	return g.Commit()
}

// removePortTable removes the table when no network is left on this host.
func removePortTable() error {
	g, err := ports.Open()
	if err != nil || !g.Existing {
		return err
	}
	clear(g.Held)
	return g.Commit()
}
