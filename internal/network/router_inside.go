package network

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"slices"
	"strings"

	"github.com/google/nftables"
	"github.com/vishvananda/netlink"

	"orrery/internal/network/ends"
	"orrery/internal/site/spec"
)

// The code in this file runs inside the network namespace of a router.

const forwarding = "/proc/sys/net/ipv4/ip_forward"

var routerTable = &nftables.Table{Name: "orrery", Family: nftables.TableFamilyINet}

// routerRules let traffic of a network out and replies in, if it has NAT, and lead to its active services. The
// router itself accepts only pings.
// Connections are limited as on the host: routers have their own tables of connections, but these
// also use the kernel's memory.
func routerRules(n spec.Network) []rule {
	in, out := linkMatch{name: gate}, linkMatch{name: exit}
	all := []rule{
		{network: n.Name, chain: prerouting, why: "forged", in: in, source: subnet(n), forged: true, verdict: drop},
		{network: n.Name, chain: prerouting, why: "ping", in: in, dest: gateway(n), ask: true, verdict: notrack},
	}
	all = append(all, answerRules(n, in)...)
	if n.NAT {
		all = append(all, limitConnections(rule{network: n.Name, chain: forward, why: "out", in: in, out: out,
			source:  subnet(n),
			verdict: accept})...)
		all = append(all, rule{network: n.Name, chain: forward, why: "replies", in: out, out: in, replies: true,
			verdict: accept})
	}
	all = append(all,
		rule{network: n.Name, chain: forward, why: "closed", verdict: drop},
		rule{network: n.Name, chain: input, why: "ping", in: in, dest: gateway(n), ask: true, verdict: accept},
		rule{network: n.Name, chain: input, why: "replies", in: out, replies: true, verdict: accept},
		rule{network: n.Name, chain: input, why: "closed", verdict: drop})
	if n.NAT {
		all = append(all, rule{network: n.Name, chain: postrouting, why: "nat", out: out, source: subnet(n),
			verdict: masquerade})
	}
	return all
}

// setUpRouter sets up everything that a router needs.
func setUpRouter(n spec.Network, addresses pair) error {
	if err := replaceTable(routerTable, routerRules(n)); err != nil {
		return err
	}
	if err := os.WriteFile(forwarding, []byte("1"), 0o644); err != nil {
		return err
	}
	for _, end := range []struct{ name, address string }{{"lo", ""}, {gate, n.Gateway},
		{exit, addresses.router.String()}} {
		if err := setUpEnd(end.name, end.address, n.MTU); err != nil {
			return fmt.Errorf("%s: %w", end.name, err)
		}
	}
	return netlink.RouteReplace(&netlink.Route{Dst: allIPv4(), Gw: addresses.host.Addr().AsSlice()})
}

func setUpEnd(name, address string, mtu int) error {
	link, err := netlink.LinkByName(name)
	if err != nil {
		return err
	}
	if name == "lo" {
		return netlink.LinkSetUp(link)
	}
	if err := ends.DisableIPv6(name); err != nil {
		return err
	}
	if err := netlink.LinkSetMTU(link, mtu); err != nil {
		return err
	}
	if err := setAddress(link, address); err != nil {
		return err
	}
	return netlink.LinkSetUp(link)
}

func allIPv4() *net.IPNet { return &net.IPNet{IP: net.IPv4zero.To4(), Mask: net.CIDRMask(0, 32)} }

// checkInside returns an error if something differs from what setUpRouter made.
func checkInside(n spec.Network, addresses pair) error {
	existing, err := comments(routerTable)
	if err != nil {
		return err
	}
	if !slices.Equal(existing, ruleComments(routerRules(n))) {
		return errors.New("the router's rules have changed")
	}
	if value, err := os.ReadFile(forwarding); err != nil || strings.TrimSpace(string(value)) != "1" {
		return errors.New("the router does not forward")
	}
	for _, end := range []struct{ name, address string }{{gate, n.Gateway}, {exit, addresses.router.String()}} {
		if err := checkEnd(end.name, end.address, n.MTU); err != nil {
			return err
		}
	}
	routes, err := ends.ListConsistent(func() ([]netlink.Route, error) {
		return netlink.RouteList(nil, netlink.FAMILY_V4)
	})
	if err != nil {
		return err
	}
	if !slices.ContainsFunc(routes, func(r netlink.Route) bool { return isDefaultRouteVia(r, addresses.host.Addr()) }) {
		return errors.New("the router has no default route")
	}
	return nil
}

func checkEnd(name, address string, mtu int) error {
	link, err := netlink.LinkByName(name)
	if err != nil {
		return err
	}
	addresses, err := ends.ListConsistent(func() ([]netlink.Addr, error) {
		return netlink.AddrList(link, netlink.FAMILY_V4)
	})
	if err != nil {
		return err
	}
	if len(addresses) != 1 || addresses[0].IPNet.String() != address || link.Attrs().MTU != mtu || !ends.IsUp(link) {
		return fmt.Errorf("the router's %s has changed", name)
	}
	return nil
}

func isDefaultRouteVia(r netlink.Route, by netip.Addr) bool {
	gw, ok := netip.AddrFromSlice(r.Gw.To4())
	return ok && gw == by && (r.Dst == nil || r.Dst.String() == allIPv4().String())
}
