package check

import (
	"fmt"
	"slices"

	"orrery/internal/site"
)

// Bounds of an MTU. IPv4 allows 68, but 576 is what every host must be able to receive (RFC 791), and below it
// resolvers and path MTU discovery do not work in practice.
const (
	minMTU = 576
	maxMTU = 65535
)

func (c *checker) networks() {
	for _, n := range c.site.Networks {
		c.label(at("network", n.Name), "network", n.Name)
		c.kind(&n)
		c.mtu(at("network", n.Name, "mtu"), n.MTU)
		c.openings(&n)
		c.protocols(&n)
		if n.Encrypt && (n.Wired() || site.KindOf(n.Kind).Routed) {
			c.wrong(at("network", n.Name, "encrypt"), "take it out", "network %s is not encrypted, for it is not Orrery that joins its hosts", n.Name)
		}
		if n.Metadata && !n.NAT {
			c.wrong(at("network", n.Name, "metadata"), "give it nat, or take it out",
				"network %s has no nat by which it could reach link-local addresses of the host", n.Name)
		}
		if n.NAT && !n.Gateway.IsValid() && !site.KindOf(n.Kind).WithoutHost {
			c.wrong(at("network", n.Name, "nat"), "give a gateway", "nat has no gateway through which to leave")
		}
		key := at("network", n.Name, "subnet")
		switch {
		case !n.Subnet.IsValid():
			c.wrong(key, `write subnet = "10.8.67.0/24"`, "network %s has no subnet", n.Name)
		case !n.Subnet.Addr().Is4():
			c.wrong(key, `such as "10.8.67.0/24"`, "subnet %s is not IPv4", n.Subnet)
		case site.Room(n.Subnet) == 0:
			c.wrong(key, "/1 to /30", "subnet %s has no room for nodes", n.Subnet)
		case n.Gateway.IsValid():
			if wrong := ill(&n, n.Gateway); wrong != "" {
				c.wrong(at("network", n.Name, "gateway"), fmt.Sprintf("%s is usual", n.Subnet.Addr().Next()), "gateway %s %s", n.Gateway, wrong)
			}
		}
	}
}

// maxOpenings is how many ports and ranges of the host a network may open: they stand in the mark of its link, which has little room.
const maxOpenings = 6

// openings checks what a network says of the host.
func (c *checker) openings(n *site.Network) {
	key := func(i ...any) []string { return at(append([]any{"network", n.Name, "host"}, i...)...) }
	for i, word := range n.Host {
		if _, err := site.ParseOpenings([]string{word}); err != nil {
			c.wrong(key(i), `such as "tcp/22", "udp/6000-6007", "dns" or "all"`, "%s", err)
		}
	}
	all, err := site.ParseOpenings(n.Host)
	switch {
	case err != nil:
	case len(all) > maxOpenings:
		c.wrong(key(), "write ranges", "network %s opens %d ports and ranges of the host; %d are possible", n.Name, len(all), maxOpenings)
	case len(all) > 0 && n.Bridge != "": // the host has addresses on that
	case len(all) > 0 && (!n.Gateway.IsValid() || site.KindOf(n.Kind).WithoutHost):
		c.wrong(key(), "give a gateway, or take it out", "network %s opens ports of the host, which is not on it", n.Name)
	}
	if n.Spoof && !site.KindOf(n.Kind).Bridged {
		c.wrong(at("network", n.Name, "spoof"), "take it out", "%s network %s cannot let its nodes send as others", n.Kind, n.Name)
	}
}

// maxProtocols is how many protocols a network may allow besides IP and ARP: they stand in the mark of its link as well.
const maxProtocols = 4

// protocols checks which protocols a network allows its nodes.
func (c *checker) protocols(n *site.Network) {
	key := at("network", n.Name, "protocols")
	all, err := site.ParseProtocols(n.Protocols)
	switch {
	case err != nil:
		c.wrong(key, `"ptp" or an EtherType such as "0x88a4"; spoof = true allows all`, "%s", err)
	case len(all) > maxProtocols:
		c.wrong(key, "spoof = true allows all", "network %s allows %d protocols; %d are possible", n.Name, len(all), maxProtocols)
	case len(all) > 0 && !site.KindOf(n.Kind).Bridged:
		c.wrong(key, "take it out", "%s network %s has no ports at which protocols are told apart", n.Kind, n.Name)
	}
}

func (c *checker) mtu(key []string, mtu int) {
	if mtu != 0 && (mtu < minMTU || mtu > maxMTU) {
		c.wrong(key, fmt.Sprintf("%d to %d; 1500 is usual", minMTU, maxMTU), "mtu %d is out of range", mtu)
	}
}

func (c *checker) overlaps() {
	var sorted []*site.Network
	for i := range c.site.Networks {
		if n := &c.site.Networks[i]; site.Room(n.Subnet) > 0 {
			sorted = append(sorted, n)
		}
	}
	slices.SortStableFunc(sorted, func(a, b *site.Network) int { return a.Subnet.Addr().Compare(b.Subnet.Addr()) })
	var widest *site.Network // of those before, the one that ends last
	for _, n := range sorted {
		if widest != nil && widest.Subnet.Overlaps(n.Subnet) {
			c.add(Mistake{
				Key: at("network", n.Name, "subnet"), Other: at("network", widest.Name, "subnet"), Cure: "give each its own",
				What: fmt.Sprintf("subnet %s overlaps %s of network %s", n.Subnet, widest.Subnet, widest.Name),
			})
		}
		if widest == nil || site.Broadcast(widest.Subnet).Less(site.Broadcast(n.Subnet)) {
			widest = n
		}
	}
}
