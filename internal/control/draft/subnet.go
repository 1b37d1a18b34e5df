package draft

import (
	"crypto/sha256"
	"net/netip"
	"slices"

	"orrery/internal/network"
)

// takenSubnets returns the subnets of this host's interfaces and routes, and of sites that are up. It
// is a variable, so that tests can change it.
var takenSubnets = func() (taken []netip.Prefix) {
	_, around, err := network.Around("")
	if err != nil {
		return nil // a draft needs no host; up says if a subnet is taken
	}
	add := func(text string) {
		if p, err := netip.ParsePrefix(text); err == nil {
			taken = append(taken, p)
		}
	}
	for i := range around.Networks {
		add(around.Networks[i].Subnet)
	}
	for _, l := range around.Leads {
		add(l.To)
	}
	return taken
}

// The second numbers of the subnets to choose from: 10.77.0.0/24 to 10.96.255.0/24.
const firstSubnet, lastSubnet = 77, 96

// freeSubnet returns a subnet that is not taken. Which one comes first depends on the name of the
// site, so that sites that are not up yet hardly ever get the same one.
func freeSubnet(name string, taken []netip.Prefix) netip.Prefix {
	sum := sha256.Sum256([]byte(name))
	start := netip.PrefixFrom(netip.AddrFrom4([4]byte{10, firstSubnet, sum[0], 0}), 24)
	for i := range (lastSubnet - firstSubnet + 1) * 256 {
		n := int(sum[0]) + i
		second := firstSubnet + n/256%(lastSubnet-firstSubnet+1)
		p := netip.PrefixFrom(netip.AddrFrom4([4]byte{10, byte(second), byte(n % 256), 0}), 24)
		if isFree(p, taken) {
			return p
		}
	}
	return start // the host has a route to all of them
}

func isFree(p netip.Prefix, taken []netip.Prefix) bool {
	return !slices.ContainsFunc(taken, p.Overlaps)
}
