package network

import (
	"encoding/binary"
	"errors"
	"net/netip"
	"slices"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"orrery/internal/network/ends"
)

// transferRange is the range of which the host and each router use two addresses between them (RFC
// 3021). These are link-local addresses, which no site has and hardly any host. The parts reserved
// by RFC 3927 are left out, and so is the range where clouds provide metadata.
var transferRange = netip.MustParsePrefix("169.254.0.0/16")

var reserved = []netip.Prefix{
	netip.MustParsePrefix("169.254.0.0/24"), netip.MustParsePrefix("169.254.255.0/24"),
	netip.MustParsePrefix("169.254.169.0/24"),
}

// A pair is the two addresses of a transfer link, with prefix length.
type pair struct{ host, router netip.Prefix }

func newPair(p netip.Prefix) pair {
	p = p.Masked()
	return pair{p, netip.PrefixFrom(p.Addr().Next(), p.Bits())}
}

// choosePair returns the pair that a link has, or one that is free on this host. The search starts
// at a position derived from the link's name, so a router that is made again usually gets the same
// pair.
func choosePair(link netlink.Link) (pair, error) {
	taken, err := usedTransfers(link.Attrs().Index)
	if err != nil {
		return pair{}, err
	}
	free := func(p netip.Prefix) bool { return !slices.ContainsFunc(taken, p.Overlaps) }
	if p, ok := pairOf(link); ok && free(p.host) {
		return p, nil
	}
	const all = 1 << 15 // pairs in transfers
	mac := ends.MAC(link.Attrs().Name)
	first := int(binary.BigEndian.Uint16(mac[4:]))
	for i := range all {
		at := transferRange.Addr().As4()
		binary.BigEndian.PutUint16(at[2:], uint16((first+i)%all*2))
		if p := netip.PrefixFrom(netip.AddrFrom4(at), 31); free(p) {
			return newPair(p), nil
		}
	}
	return pair{}, errors.New("no pair of addresses in " + transferRange.String() + " is free")
}

// pairOf returns the pair of a link, if the link has the host's address of it and no other.
func pairOf(link netlink.Link) (pair, bool) {
	addresses, err := ends.ListConsistent(func() ([]netlink.Addr, error) {
		return netlink.AddrList(link, netlink.FAMILY_V4)
	})
	if err != nil || len(addresses) != 1 {
		return pair{}, false
	}
	p, err := netip.ParsePrefix(addresses[0].IPNet.String())
	if err != nil || p.Bits() != 31 || !transferRange.Contains(p.Addr()) || p != p.Masked() {
		return pair{}, false
	}
	return newPair(p), true
}

// usedTransfers returns the parts of transfers that the host uses, except on one link. A route to
// all of transfers, as zeroconf makes, does not count, since more specific routes take precedence.
func usedTransfers(link int) ([]netip.Prefix, error) {
	taken := slices.Clone(reserved)
	addresses, err := ends.ListConsistent(func() ([]netlink.Addr, error) {
		return netlink.AddrList(nil, netlink.FAMILY_V4)
	})
	if err != nil {
		return nil, err
	}
	for _, a := range addresses {
		if ip, ok := netip.AddrFromSlice(a.IP.To4()); ok && a.LinkIndex != link {
			taken = append(taken, netip.PrefixFrom(ip, 32))
		}
	}
	routes, err := hostRoutes()
	if err != nil {
		return nil, err
	}
	for _, r := range routes {
		if r.link != link && r.to.Bits() > transferRange.Bits() {
			taken = append(taken, r.to)
		}
	}
	return taken, nil
}

// A routeRule is a route of the host.
type routeRule struct {
	to   netip.Prefix
	link int // index, or 0 if there are several
}

// hostRoutes returns the host's routes except the default ones. It reads all tables, since that of
// a VPN may come before the main one (ip-rule(8)).
func hostRoutes() ([]routeRule, error) {
	unicast := netlink.Route{Type: unix.RTN_UNICAST}
	routes, err := ends.ListConsistent(func() ([]netlink.Route, error) {
		return netlink.RouteListFiltered(netlink.FAMILY_V4, &unicast, netlink.RT_FILTER_TABLE|netlink.RT_FILTER_TYPE)
	})
	if err != nil {
		return nil, err
	}
	var all []routeRule
	for _, r := range routes {
		if r.Dst == nil {
			continue
		}
		// 0.0.0.0/0, and the two halves of it by which VPNs override it, apply only where no more
		// specific route does.
		if to, err := netip.ParsePrefix(r.Dst.String()); err == nil && to.Bits() > 1 {
			all = append(all, routeRule{to, r.LinkIndex})
		}
	}
	return all, nil
}
