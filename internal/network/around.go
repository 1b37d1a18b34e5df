package network

import (
	"net/netip"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/vishvananda/netlink"

	"orrery/internal/network/ends"
	"orrery/internal/network/kind"
	"orrery/internal/network/passthrough"
	"orrery/internal/observe"
	"orrery/internal/problem"
	"orrery/internal/site"
	"orrery/internal/site/spec"
	"orrery/internal/tree/rawfile"
)

// Around returns the addresses by which other machines may reach the host, and what the host has in
// addition to a site's networks and nodes.
func Around(siteName string) ([]observe.Address, observe.HostNetworking, error) {
	reached, err := Addresses()
	if err != nil {
		return nil, observe.HostNetworking{}, err
	}
	all, err := bridges()
	if err != nil {
		return nil, observe.HostNetworking{}, problem.New(problem.Failed, "list the host's links").Because(err)
	}
	found, err := around(siteName, all)
	if err != nil {
		return nil, observe.HostNetworking{}, problem.New(problem.Failed, "list the host's addresses and routes").Because(err)
	}
	if found.Listeners, err = listeners(); err != nil {
		return nil, observe.HostNetworking{}, problem.New(problem.Failed, "list the host's listening sockets").Because(err)
	}
	found.Networks, found.Leads, found.Interfaces = limitTo(found.Networks), limitTo(found.Leads),
		limitTo(found.Interfaces)
	found.Speeds = speeds(found.Interfaces)
	found.Listeners = limitTo(found.Listeners)
	return reached, found, nil
}

// speeds returns the speeds of physical interfaces that have a link, in bit/s. The kernel invents those of
// virtual ones.
func speeds(interfaces []string) map[string]int64 {
	all := map[string]int64{}
	for _, name := range interfaces {
		dir := filepath.Join("/sys/class/net", name)
		if _, err := os.Stat(filepath.Join(dir, "device")); err != nil {
			continue
		}
		text, _ := rawfile.ReadFile(filepath.Join(dir, "speed"))
		if megabits, err := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 32); err == nil && megabits > 0 {
			all[name] = megabits * 1_000_000
		}
	}
	if len(all) == 0 {
		return nil
	}
	return all
}

func limitTo[T any](list []T) []T { return list[:min(len(list), observe.MaxHostNetworking)] }

func around(siteName string, all []bridge) (observe.HostNetworking, error) {
	var found observe.HostNetworking
	own := map[int]bool{}
	for _, b := range all {
		own[b.link.Attrs().Index] = true
		if b.marked && b.mark.Site != siteName {
			found.Networks = append(found.Networks, b.mark)
		}
	}
	if err := addPublished(found.Networks); err != nil {
		return found, err
	}
	links, err := ends.ListConsistent(netlink.LinkList)
	if err != nil {
		return found, err
	}
	names := map[int]string{}
	for _, link := range links {
		attrs := link.Attrs()
		names[attrs.Index] = attrs.Name
		if site.IsRoutedLink(attrs.Name) { // links of nodes on routed networks, whose subnets are compared instead
			own[attrs.Index] = true
		}
		if !own[attrs.Index] && !isVethEndOf(siteName, link) {
			found.Interfaces = append(found.Interfaces, attrs.Name)
		}
	}
	nameOf := func(index int) string {
		if name, ok := names[index]; ok {
			return name
		}
		return ends.NameOf(index)
	}
	addresses, err := ends.ListConsistent(func() ([]netlink.Addr, error) {
		return netlink.AddrList(nil, netlink.FAMILY_V4)
	})
	if err != nil {
		return found, err
	}
	for _, a := range addresses {
		if to, err := netip.ParsePrefix(a.IPNet.String()); err == nil && !own[a.LinkIndex] {
			found.Leads = append(found.Leads, observe.ReachableSubnet{To: to.String(), Link: nameOf(a.LinkIndex)})
		}
	}
	routes, err := hostRoutes()
	if err != nil {
		return found, err
	}
	for _, r := range routes {
		if !own[r.link] {
			found.Leads = append(found.Leads, observe.ReachableSubnet{To: r.to.String(), Link: nameOf(r.link), Route: true})
		}
	}
	return found, nil
}

// isVethEndOf reports whether a link is an end of a veth pair of a site, or one that a killed run could
// not mark.
func isVethEndOf(siteName string, link netlink.Link) bool {
	if !kind.IsVethEnd(link) {
		return false
	}
	alias := passthrough.Alias(link)
	if alias == "" {
		return true
	}
	for _, prefix := range []string{kind.VethPairAlias(spec.Network{Site: siteName}), "orrery cable " + siteName + " "} {
		if len(alias) > len(prefix) && alias[:len(prefix)] == prefix {
			return true
		}
	}
	return false
}
