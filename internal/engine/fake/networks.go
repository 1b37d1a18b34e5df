package fake

import (
	"context"
	"fmt"
	"net/netip"
	"slices"

	"orrery/internal/network"
	"orrery/internal/observe"
	"orrery/internal/plan/kernel"
	"orrery/internal/site"
	"orrery/internal/site/spec"
)

// Networks are the networks of a host in memory.
type Networks struct{ h *Host }

// Networks returns the networks of the host.
func (h *Host) Networks() Networks { return Networks{h} }

// Observe returns the existing networks.
func (w Networks) Observe(string) ([]observe.Network, error) {
	h := w.h
	nodes, err := h.List(context.Background(), h.Site)
	if err != nil {
		return nil, err
	}
	h.lock.Lock()
	defer h.lock.Unlock()
	var all []observe.Network
	for _, made := range h.networks {
		n := observe.Network{Network: made}
		if n.Kind == spec.VethPair && h.passedThrough(made, nodes) {
			n.AddDrift(observe.EndsGone)
		}
		all = append(all, n)
	}
	slices.SortFunc(all, byName)
	return all, nil
}

// Encrypts returns an error if the host cannot encrypt networks.
func (w Networks) Encrypts() error { return w.h.Encrypts }

// Prime does nothing, because nothing is encrypted.
func (w Networks) Prime(spec.Network, string) error { return nil }

// Around returns the host's Addresses and Around.
func (w Networks) Around(string) ([]observe.Address, observe.HostNetworking, error) {
	return w.h.Addresses, w.h.Around, nil
}

// Make creates a network, or changes it to the spec.
func (w Networks) Make(ctx context.Context, made spec.Network, _ func() ([]network.Port, error)) error {
	h := w.h
	what := h.begin(ctx, "network", made.Name)
	if what.err != nil {
		return what.err
	}
	halfway := what.halfway(ctx)
	h.lock.Lock()
	defer h.lock.Unlock()
	made.Bridge = site.BridgeName(made.Site, made.Name)
	if err := h.checkInterface(made); err != nil {
		return err
	}
	if made.Kind == spec.VethPair {
		h.networks[made.Bridge] = made
		return halfway
	}
	subnet := netip.MustParsePrefix(made.Subnet)
	for _, n := range h.networks {
		if n.Kind == spec.VethPair {
			continue
		}
		if n.Bridge != made.Bridge && n.Gateway != "" && n.Gateway == made.Gateway && !n.Router && !made.Router &&
			netip.MustParsePrefix(n.Subnet).Overlaps(subnet) {
			return fmt.Errorf("network %s: address %s is taken by network %s", made.Name, n.Gateway, n.Name)
		}
	}
	if halfway != nil {
		made.Gateway, made.NAT = "", false // the bridge exists, but not its address and rules
	}
	h.networks[made.Bridge] = made
	return halfway
}

// Remove removes a network on which no node runs.
func (w Networks) Remove(ctx context.Context, gone spec.Network) error {
	h := w.h
	what := h.begin(ctx, "unnetwork", gone.Name)
	if what.err != nil {
		return what.err
	}
	halfway := what.halfway(ctx)
	h.lock.Lock()
	defer h.lock.Unlock()
	h.mu.Lock()
	defer h.mu.Unlock()
	key := site.BridgeName(gone.Site, gone.Name)
	for _, n := range h.nodes {
		for _, nic := range n.spec.NICs {
			if n.running() && (nic.Bridge == key || n.spec.TakesInterface(nic) && gone.HasEnd(nic.Parent)) {
				return fmt.Errorf("network %s: node %s is running on it", gone.Name, n.spec.Name)
			}
		}
	}
	for _, n := range h.networks {
		if gone.HasEnd(n.Parent) {
			return fmt.Errorf("%s: network %s is on it", gone.Name, n.Name)
		}
	}
	if halfway == nil {
		delete(h.networks, key)
	} else if left, ok := h.networks[key]; ok {
		left.NAT, left.Gateway = false, ""
		h.networks[key] = left
	}
	return halfway
}

// MoveLinks moves the links of running nodes, all or none. The engine records the move. MoveLinks
// refuses a move after which two instances of a node would be live or share an exclusive volume.
func (w Networks) MoveLinks(ctx context.Context, moves []network.Move, _ ...string) error {
	h := w.h
	what := h.begin(ctx, "move", "")
	if what.err != nil {
		return what.err
	}
	halfway := what.halfway(ctx)
	h.lock.Lock()
	defer h.lock.Unlock()
	h.mu.Lock()
	defer h.mu.Unlock()
	before := map[*node][]spec.NIC{}
	err := h.moveLinks(moves, before)
	if err == nil && halfway != nil {
		if h.moved++; h.moved%2 == 0 { // the links were moved before the interruption
			return halfway
		}
		err = halfway
	}
	if err != nil {
		for n, nics := range before {
			n.spec.NICs = nics
		}
	}
	return err
}

// moveLinks moves links, and stores the previous interfaces of each changed node in before.
func (h *Host) moveLinks(moves []network.Move, before map[*node][]spec.NIC) error {
	for _, m := range moves {
		n, i := h.findByLink(m.Link)
		if n == nil {
			return fmt.Errorf("there is no link %s to move", m.Link)
		}
		if _, ok := h.networks[m.Bridge]; !ok {
			return fmt.Errorf("node %s (id %d): there is no bridge %s", n.spec.Name, n.spec.ID, m.Bridge)
		}
		if before[n] == nil {
			before[n] = n.spec.NICs
			n.spec.NICs = slices.Clone(n.spec.NICs)
		}
		n.spec.NICs[i].Bridge = m.Bridge
	}
	for n := range before {
		if err := checkExclusive(h.nodes, &n.spec); err != nil {
			return err
		}
	}
	return nil
}

// findByLink returns the running node with the given host end of a link, and the index of its
// interface.
func (h *Host) findByLink(link string) (*node, int) {
	for _, n := range h.nodes {
		onLink := func(nic spec.NIC) bool { return nic.HostIfName == link }
		if i := slices.IndexFunc(n.spec.NICs, onLink); i >= 0 && n.running() {
			return n, i
		}
	}
	return nil, 0
}

// AddAntiSpoof does nothing.
func (Networks) AddAntiSpoof(context.Context, []network.Port) error { return nil }

// RemoveAntiSpoof does nothing.
func (Networks) RemoveAntiSpoof(context.Context, string, []network.Port) error { return nil }

// Sweep does nothing.
func (Networks) Sweep(context.Context) error { return nil }

// checkPrerequisites returns an error if something is missing for making or starting a node: its layers to
// make it, or the host's settings, the written names, networks and free addresses to start it.
func (h *Host) checkPrerequisites(method string, n *spec.Node) error {
	h.lock.Lock()
	defer h.lock.Unlock()
	if method != "Start" {
		if !h.layers[n.Base] || n.Layer != "" && !h.layers[n.Layer] {
			return fmt.Errorf("node %s: its layers are missing", n.Name)
		}
		return nil
	}
	if lacks := kernel.Missing(h.settings, false); len(lacks) > 0 {
		return fmt.Errorf("node %s: the host is not prepared: %v", n.Name, lacks)
	}
	if h.Named != nil && !h.Named() && n.Release == 0 { // nodes of a release get names when they are made
		return fmt.Errorf("node %s: the names file is missing", n.Name)
	}
	for _, nic := range n.NICs {
		if _, ok := h.networks[nic.Bridge]; !ok {
			return fmt.Errorf("node %s: network %s does not exist", n.Name, nic.Network)
		}
		if n.LinkKind(nic).VirtualFunctions {
			if err := h.checkFunctionFree(nic.Parent); err != nil {
				return fmt.Errorf("node %s: %w", n.Name, err)
			}
		} else if n.TakesInterface(nic) {
			if err := h.checkInterfaceFree(nic.Parent); err != nil {
				return fmt.Errorf("node %s: %w", n.Name, err)
			}
		}
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, other := range h.nodes {
		if other.running() && other.spec.Name != n.Name {
			if nic, ok := addressClash(&other.spec, n); ok {
				return fmt.Errorf("node %s: address %s is taken by node %s", n.Name, nic.Address, other.spec.Name)
			}
		}
	}
	return nil
}

func addressClash(a, b *spec.Node) (spec.NIC, bool) {
	for _, x := range a.NICs {
		for _, y := range b.NICs {
			if x.Bridge == y.Bridge && x.Address == y.Address || a.TakesInterface(x) && b.TakesInterface(y) &&
				x.Parent == y.Parent {
				return y, true
			}
		}
	}
	return spec.NIC{}, false
}
