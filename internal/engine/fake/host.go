package fake

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"sync"

	"orrery/internal/engine"
	"orrery/internal/observe"
	"orrery/internal/observe/sriov"
	"orrery/internal/plan/kernel"
	"orrery/internal/site/spec"
)

// Host is a machine in memory, as one site sees it: the nodes of a fake engine, and what they need.
// It is strict: an operation fails if what it would need on a real host is missing. It runs no
// steps. The real worker does that on a Host instead of a machine (package apply/local/memory).
type Host struct {
	*Engine
	Site   string
	Name   string
	Cpus   int
	Memory int64
	// Interfaces are the machine's own interfaces, which nodes and networks may take. If it is nil,
	// all interfaces exist.
	Interfaces []string
	// Cards are the machine's network cards with virtual functions, while no node runs.
	Cards []sriov.Card
	// Addresses are the addresses by which other hosts may reach the host.
	Addresses []observe.Address
	// Around is what the host has outside the site.
	Around   observe.HostNetworking
	Encrypts error // why its kernel cannot encrypt, or nil if it can
	// NoTraffic is why its kernel cannot limit traffic, or the zero Missing if it can.
	NoTraffic observe.Missing
	// Named reports whether the nodes' names have been written to all nodes.
	Named func() bool

	lock     sync.Mutex
	networks map[string]spec.Network // by bridge
	layers   map[string]bool
	files    map[string]bool // received files, by digest
	settings map[string]string
	former   map[string]string // settings before they were first changed
	moved    int               // how often moving links was interrupted
}

// NewHost returns a host on which nothing has been done.
func NewHost(key, name string, cpus int, memory int64) *Host {
	settings := map[string]string{}
	for key := range kernel.Settings {
		settings[key] = "0"
	}
	h := &Host{
		Engine: New(), Site: key, Name: name, Cpus: cpus, Memory: memory,
		networks: map[string]spec.Network{}, layers: map[string]bool{}, settings: settings,
	}
	h.stands = h.checkPrerequisites
	return h
}

// Observe returns the state of the host, without what is in files.
func (h *Host) Observe() observe.Host {
	nodes, err := h.List(context.Background(), h.Site)
	if err != nil {
		panic(err) // a list in memory does not fail
	}
	volumes, _ := h.Volumes().List(h.Site)
	networks, _ := h.Networks().Observe(h.Site)
	h.lock.Lock()
	defer h.lock.Unlock()
	return observe.Host{
		Name: h.Name, Cpus: h.Cpus, Memory: h.Memory, Nodes: nodes, Volumes: volumes, Networks: networks,
		Layers: maps.Clone(h.layers), Settings: maps.Clone(h.settings), Addresses: h.Addresses, Around: h.Around,
		Engines: map[string]observe.Capabilities{"fake": h.Can}, Cards: h.CardsInUse(nodes),
	}
}

// Populate adds things without a plan: running, configured and proven nodes, and the networks and
// layers that they need.
func (h *Host) Populate(networks []spec.Network, layers map[string]bool, nodes ...*spec.Node) {
	h.lock.Lock()
	for _, n := range networks {
		h.networks[n.Bridge] = n
	}
	maps.Copy(h.layers, layers)
	maps.Copy(h.settings, kernel.Settings)
	h.lock.Unlock()
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, n := range nodes {
		existing := newNode(n)
		existing.state, existing.mark = observe.Running,
			engine.Progress{Configured: true, Config: n.Config, Proven: n.Config.Health, Active: holder(n)}
		existing.boot()
		h.nodes[engine.RefOf(n)] = existing
		h.volumes.make(n)
	}
}

// holder reports whether a node, if it is live, has exclusive volumes or does something that only
// live nodes do.
func holder(n *spec.Node) bool {
	return !n.Staged && (n.Exclusive() || len(n.Config.Active) > 0)
}

func byName(a, b observe.Network) int {
	return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.Site, b.Site))
}

// Copies returns the releases for which copies of volumes exist.
func (h *Host) Copies() []int {
	h.mu.Lock()
	defer h.mu.Unlock()
	var all []int
	for v := range h.volumes {
		if v.site == h.Site && v.copy != 0 {
			all = append(all, v.copy)
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}
