package fake

import (
	"fmt"
	"slices"

	"orrery/internal/observe"
	"orrery/internal/observe/sriov"
	"orrery/internal/site"
	"orrery/internal/site/spec"
)

// This file is about host interfaces that nodes and networks take. Its methods need the host's
// lock.

// checkInterfaceFree returns an error if the host has no such interface or a network is on it. Ends of veth
// pairs count as interfaces.
func (h *Host) checkInterfaceFree(name string) error {
	known := h.Interfaces == nil || slices.Contains(h.Interfaces, name)
	for _, n := range h.networks {
		if n.Parent == name {
			return fmt.Errorf("interface %s: network %s is on it", name, n.Name)
		}
		known = known || n.HasEnd(name)
	}
	if !known {
		return fmt.Errorf("the host has no interface %s", name)
	}
	return nil
}

// checkFunctionFree returns an error if the host has no such virtual function, or if a program outside
// of the site uses it.
func (h *Host) checkFunctionFree(name string) error {
	address, index, _ := sriov.ParseName(name)
	for i := range h.Cards {
		if c := &h.Cards[i]; c.Address == address && index < c.Usable() && c.Use(index) == (sriov.Use{Index: index}) {
			return nil
		}
	}
	return fmt.Errorf("the host has no free virtual function %q", name)
}

// CardsInUse returns the machine's cards as they are while nodes run.
func (h *Host) CardsInUse(nodes []observe.Node) []sriov.Card {
	all := slices.Clone(h.Cards)
	for i := range all {
		c := &all[i]
		c.Used = slices.Clone(c.Used)
		for j := range nodes {
			n := &nodes[j]
			for _, nic := range n.NICs {
				address, index, ok := sriov.ParseName(nic.Parent)
				if ok && address == c.Address && n.Runs() && n.TakesInterface(nic) {
					c.Current = max(c.Usable(), c.Current)
					c.Used = append(c.Used, sriov.Use{Index: index, Holder: fmt.Sprintf("%s/%d", n.Site, n.ID)})
				}
			}
		}
	}
	return all
}

// checkInterface returns an error if a network cannot be made: its interface is missing or taken, or
// nodes run on the network in its current form.
func (h *Host) checkInterface(made spec.Network) error {
	old, found := h.networks[made.Bridge]
	changes := found && (old.Kind != made.Kind || old.Ends != made.Ends ||
		old.Parent != made.Parent && !site.KindOf(made.Kind).VirtualFunctions)
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, n := range h.nodes {
		if !n.running() {
			continue
		}
		for _, nic := range n.spec.NICs {
			if changes && (nic.Bridge == made.Bridge || n.spec.KindOf(nic) == nic.Kind && old.HasEnd(nic.Parent)) {
				return fmt.Errorf("network %s cannot change while node %s is running on it", made.Name, n.spec.Name)
			}
			if n.spec.TakesInterface(nic) && nic.Parent == made.Parent {
				return fmt.Errorf("network %s: node %s has interface %s", made.Name, n.spec.Name, made.Parent)
			}
		}
	}
	for _, n := range h.networks {
		if n.Bridge != made.Bridge && (made.HasEnd(n.Ends[0]) || made.HasEnd(n.Ends[1])) {
			return fmt.Errorf("network %s: an end belongs to network %s", made.Name, n.Name)
		}
	}
	if made.Parent == "" || found && !changes {
		return nil
	}
	if site.KindOf(made.Kind).VirtualFunctions { // several networks can share the interface
		if len(sriov.Of(h.Cards, sriov.Interfaces(made.Parent))) == 0 {
			return fmt.Errorf("network %s: no interface of %s has virtual functions", made.Name, made.Parent)
		}
		return nil
	}
	for _, n := range h.networks {
		if n.Bridge != made.Bridge && n.Parent == made.Parent {
			return fmt.Errorf("network %s: network %s is on %s", made.Name, n.Name, made.Parent)
		}
	}
	return h.checkInterfaceExists(made)
}

// checkInterfaceExists returns an error if the host lacks the interface of a network, even if it is taken.
func (h *Host) checkInterfaceExists(made spec.Network) error {
	if h.Interfaces == nil || slices.Contains(h.Interfaces, made.Parent) {
		return nil
	}
	for _, n := range h.networks {
		if n.HasEnd(made.Parent) {
			return nil
		}
	}
	return fmt.Errorf("network %s: the host has no interface %s", made.Name, made.Parent)
}

// passedThrough reports whether running nodes have both ends of a veth pair.
func (h *Host) passedThrough(veth spec.Network, nodes []observe.Node) bool {
	taken := map[string]bool{}
	for i := range nodes {
		n := &nodes[i]
		for _, nic := range n.NICs {
			if n.Runs() {
				taken[nic.Parent] = taken[nic.Parent] || n.TakesInterface(nic)
			}
		}
	}
	return taken[veth.Ends[0]] && taken[veth.Ends[1]]
}
