package check

import (
	"fmt"
	"slices"

	"orrery/internal/site"
)

// Limits of an MTU. IPv4 allows 68, but every host must be able to receive 576 (RFC 791). Below
// that, resolvers and path MTU discovery fail in practice.
const (
	minMTU = 576
	maxMTU = 65535
)

func checkNetworks(ix *index, found *findings) {
	for _, n := range ix.Networks {
		checkLabel(found, at("network", n.Name), "network", n.Name)
		checkKind(ix, found, &n)
		checkMTU(found, at("network", n.Name, "mtu"), n.MTU)
		checkPortRanges(found, &n)
		checkProtocols(found, &n)
		if n.Encrypt && (n.Wired() || site.KindOf(n.Kind).Routed) {
			found.report(at("network", n.Name, "encrypt"), "remove it",
				"network %s cannot be encrypted, because Orrery does not join its hosts", n.Name)
		}
		if n.Metadata && !n.NAT {
			found.report(at("network", n.Name, "metadata"), "add nat, or remove it",
				"network %s has no nat, which it needs to reach link-local addresses of the host", n.Name)
		}
		if n.NAT && !n.Gateway.IsValid() && !site.KindOf(n.Kind).WithoutHost {
			found.report(at("network", n.Name, "nat"), "set a gateway", "nat needs a gateway")
		}
		key := at("network", n.Name, "subnet")
		switch {
		case !n.Subnet.IsValid():
			found.report(key, `write subnet = "10.8.67.0/24"`, "network %s has no subnet", n.Name)
		case !n.Subnet.Addr().Is4():
			found.report(key, `such as "10.8.67.0/24"`, "subnet %s is not IPv4", n.Subnet)
		case site.SubnetCapacity(n.Subnet) == 0:
			found.report(key, "/1 to /30", "subnet %s has no room for nodes", n.Subnet)
		case n.Gateway.IsValid():
			if wrong := invalidAddress(&n, n.Gateway); wrong != "" {
				found.report(at("network", n.Name, "gateway"), fmt.Sprintf("%s is usual", n.Subnet.Addr().Next()), "gateway %s %s",
					n.Gateway, wrong)
			}
		}
	}
}

// maxPortRanges is the maximum number of ports and port ranges of the host that a network may open.
// They are stored in the mark of the network's link, which has little space.
const maxPortRanges = 6

// checkPortRanges checks the ports of the host that a network opens.
func checkPortRanges(found *findings, n *site.Network) {
	key := func(i ...any) []string { return at(append([]any{"network", n.Name, "host"}, i...)...) }
	for i, word := range n.Host {
		if _, err := site.ParsePortRanges([]string{word}); err != nil {
			found.report(key(i), `such as "tcp/22", "udp/6000-6007", "dns" or "all"`, "%s", err)
		}
	}
	all, err := site.ParsePortRanges(n.Host)
	switch {
	case err != nil:
	case len(all) > maxPortRanges:
		found.report(key(), "combine them into ranges",
			"network %s opens %d ports and ranges of the host; the maximum is %d", n.Name,
			len(all), maxPortRanges)
	case len(all) > 0 && n.Bridge != "": // the host has addresses on its own bridge
	case len(all) > 0 && (!n.Gateway.IsValid() || site.KindOf(n.Kind).WithoutHost):
		found.report(key(), "set a gateway, or remove it", "network %s opens ports of the host, which is not on it",
			n.Name)
	}
	if n.Spoof && !site.KindOf(n.Kind).Bridged {
		found.report(at("network", n.Name, "spoof"), "remove it", "%s network %s cannot allow spoofing",
			n.Kind, n.Name)
	}
}

// maxProtocols is the maximum number of protocols that a network may allow in addition to IP and
// ARP. They are also stored in the mark of its link.
const maxProtocols = 4

// checkProtocols checks the protocols that a network allows its nodes to send.
func checkProtocols(found *findings, n *site.Network) {
	key := at("network", n.Name, "protocols")
	all, err := site.ParseProtocols(n.Protocols)
	switch {
	case err != nil:
		found.report(key, `"ptp" or an EtherType such as "0x88a4"; spoof = true allows all`, "%s", err)
	case len(all) > maxProtocols:
		found.report(key, "spoof = true allows all", "network %s allows %d protocols; the maximum is %d", n.Name,
			len(all),
			maxProtocols)
	case len(all) > 0 && !site.KindOf(n.Kind).Bridged:
		found.report(key, "remove it", "%s network %s cannot filter protocols", n.Kind, n.Name)
	}
}

func checkMTU(found *findings, key []string, mtu int) {
	if mtu != 0 && (mtu < minMTU || mtu > maxMTU) {
		found.report(key, fmt.Sprintf("%d to %d; 1500 is usual", minMTU, maxMTU), "mtu %d is out of range", mtu)
	}
}

func checkOverlaps(ix *index, found *findings) {
	narrow := func(n *site.Network) bool { return site.SubnetCapacity(n.Subnet) == 0 }
	sorted := slices.DeleteFunc(slices.Collect(each(ix.Networks)), narrow)
	slices.SortStableFunc(sorted, func(a, b *site.Network) int { return a.Subnet.Addr().Compare(b.Subnet.Addr()) })
	var widest *site.Network // of the previous networks, the one that ends last
	for _, n := range sorted {
		if widest != nil && widest.Subnet.Overlaps(n.Subnet) {
			found.reportConflict(at("network", n.Name, "subnet"), at("network", widest.Name, "subnet"),
				"give each network its own",
				"subnet %s overlaps %s of network %s", n.Subnet, widest.Subnet, widest.Name)
		}
		if widest == nil || site.Broadcast(widest.Subnet).Less(site.Broadcast(n.Subnet)) {
			widest = n
		}
	}
}
