package vfs

import (
	"fmt"
	"slices"
	"strings"

	"orrery/internal/observe"
	"orrery/internal/observe/sriov"
	"orrery/internal/problem"
	"orrery/internal/site"
	"orrery/internal/site/spec"
	"orrery/internal/text/humanize"
)

// Place sets the virtual functions of nodes in a site in which every node has a host. The site must
// be a copy, of which Place replaces the nodes' interfaces. A node without a function has none left;
// Check reports that.
func Place(placed *site.Site, hosts []observe.Host) {
	if !slices.ContainsFunc(placed.Networks, isPool) {
		return
	}
	for i := range hosts {
		placeHost(placed, &hosts[i])
	}
}

// Pools returns the networks of virtual functions of a site, each with its interfaces, or nil.
func Pools(s *site.Site) map[string][]string {
	var all map[string][]string
	for _, n := range s.Networks {
		if isPool(n) {
			if all == nil {
				all = map[string][]string{}
			}
			all[n.Name] = sriov.Interfaces(n.Interface)
		}
	}
	return all
}

// Room returns how many nodes of a site, given by its key, can have functions of interfaces of a host.
func Room(cards []sriov.Card, interfaces []string, key string) (all int) {
	for _, c := range sriov.Of(cards, interfaces) {
		all += c.Usable()
		for _, u := range c.Used {
			if isForeign(u, key) {
				all--
			}
		}
	}
	return all
}

// isForeign reports whether a function is used by others than the nodes of a site.
func isForeign(u sriov.Use, key string) bool {
	return u.Other != "" || u.Holder != "" && !strings.HasPrefix(u.Holder, key+"/")
}

func isPool(n site.Network) bool { return site.KindOf(n.Kind).VirtualFunctions }

func placeHost(placed *site.Site, h *observe.Host) {
	var wants []Want
	var nics []*site.NIC
	names := map[string]bool{}
	for i := range placed.Nodes {
		n := &placed.Nodes[i]
		if n.Host != h.Name {
			continue
		}
		names[n.Name] = true
		n.NICs = slices.Clone(n.NICs)
		for j := range n.NICs {
			on, ok := placed.Network(n.NICs[j].Network)
			if !ok || !isPool(*on) {
				continue
			}
			w := Want{Node: n.Name, Network: on.Name, ID: n.FullID(), Interfaces: sriov.Interfaces(on.Interface),
				Holders: []string{holder(placed.Key(), n.FullID())}}
			for k := range h.Nodes {
				if old := &h.Nodes[k]; old.Name == n.Name {
					w.Holders = append(w.Holders, holder(old.Site, old.ID))
				}
			}
			w.Had = recorded(h, n.Name, on.Name)
			wants, nics = append(wants, w), append(nics, &n.NICs[j])
		}
	}
	if isUnasked(h) {
		for i, w := range wants {
			nics[i].Interface = w.Had
		}
		return
	}
	var reserved []string
	for i := range h.Nodes {
		if old := &h.Nodes[i]; !names[old.Name] {
			for _, nic := range old.NICs {
				if site.KindOf(nic.Kind).VirtualFunctions {
					reserved = append(reserved, nic.Parent)
				}
			}
		}
	}
	for i, name := range Assign(h.Cards, wants, reserved) {
		nics[i].Interface = name
	}
}

func holder(key string, id int) string { return fmt.Sprintf("%s/%d", key, id) }

// isUnasked reports whether it is unknown which hardware a host has.
func isUnasked(h *observe.Host) bool { return h.Unknown || h.Engines == nil }

// recorded returns the function in the record of a node for a network, or "". The record of a live
// node counts before that of one in quarantine.
func recorded(h *observe.Host, node, network string) (name string) {
	for i := range h.Nodes {
		n := &h.Nodes[i]
		at := slices.IndexFunc(n.NICs, func(nic spec.NIC) bool {
			return nic.Network == network && site.KindOf(nic.Kind).VirtualFunctions
		})
		if n.Name == node && at >= 0 && n.NICs[at].Parent != "" && (name == "" || !n.Staged) {
			name = n.NICs[at].Parent
		}
	}
	return name
}

// Check returns an error if a host has no virtual function for some of its nodes, which Place has
// placed.
func Check(placed *site.Site, nodes []*site.Node, h *observe.Host) error {
	if isUnasked(h) || placed.Stage != 0 { // networks of a quarantine are bridges
		return nil
	}
	var all problem.List
	for i := range placed.Networks {
		on := &placed.Networks[i]
		if !isPool(*on) {
			continue
		}
		var without []string
		for _, n := range nodes {
			for _, nic := range n.NICs {
				if nic.Network == on.Name && nic.Interface == "" {
					without = append(without, n.Name)
				}
			}
		}
		if len(without) > 0 {
			all = append(all, lacking(placed, on, h, without).At(on.Place))
		}
	}
	return all.OrNil()
}

// lacking returns why nodes get no virtual function.
func lacking(placed *site.Site, on *site.Network, h *observe.Host, without []string) *problem.Problem {
	interfaces := sriov.Interfaces(on.Interface)
	cards := sriov.Of(h.Cards, interfaces)
	if len(cards) == 0 {
		return cardMissing(on, h, interfaces)
	}
	wanted, have := 0, 0
	for i := range placed.Nodes {
		if n := &placed.Nodes[i]; n.Host == h.Name && slices.Contains(n.Networks(), on.Name) {
			wanted++
		}
	}
	var others []string
	cure := "put some of the nodes on another host, or add an interface to the network"
	for _, c := range cards {
		have += c.Usable()
		for _, u := range c.Used {
			if isForeign(u, placed.Key()) {
				others = append(others, describeUse(c, u))
			}
		}
		if c.Usable() < c.Total {
			cure = fmt.Sprintf("%s could have %d, but the kernel can change that only while none is in use: stop what uses them, "+
				"then run orrery up", interfaceOf(c, interfaces), c.Total)
		}
	}
	p := problem.New(problem.Unable,
		"network %s: %d nodes on host %s need a virtual function of %s, which has %d; none is left for %s", on.Name, wanted,
		h.Name, humanize.List(interfaces, 4), have, humanize.List(without, 8))
	if have == 0 {
		return problem.New(problem.Unable, "network %s: %s of host %s can have no virtual functions, as needed by %s", on.Name,
			humanize.List(interfaces, 4), h.Name, humanize.List(without, 8)).Try("%s", noneCure)
	}
	if len(others) > 0 {
		p.What += "; in use by others: " + humanize.List(others, 8)
	}
	return p.Try("%s", cure)
}

const noneCure = "turn SR-IOV on in the firmware of the host and of the card, and use the card's own driver; " +
	"orrery doctor shows which cards have it"

func cardMissing(on *site.Network, h *observe.Host, interfaces []string) *problem.Problem {
	for _, name := range interfaces {
		if slices.Contains(h.Around.Interfaces, name) {
			return problem.New(problem.Unable, "network %s: interface %s of host %s has no virtual functions", on.Name, name,
				h.Name).
				Try("%s", noneCure)
		}
	}
	return problem.New(problem.Unable, "network %s: host %s has no interface %s", on.Name, h.Name,
		humanize.List(interfaces, 4)).
		Try("ip link lists its interfaces")
}

func describeUse(c *sriov.Card, u sriov.Use) string {
	if u.Other != "" {
		return sriov.Name(c.Address, u.Index) + " (" + u.Other + ")"
	}
	return sriov.Name(c.Address, u.Index) + " (node " + u.Holder + ")"
}

// interfaceOf returns the interface by which a network names a card.
func interfaceOf(c *sriov.Card, interfaces []string) string {
	for _, name := range interfaces {
		if slices.Contains(c.Interfaces, name) {
			return name
		}
	}
	return c.Address
}
