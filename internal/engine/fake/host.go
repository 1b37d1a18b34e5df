package fake

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"sync"

	"orrery/internal/engine"
	"orrery/internal/observe"
	"orrery/internal/plan/kernel"
	"orrery/internal/site/spec"
)

// Host is a machine in memory, as one site sees it: the nodes of a fake engine, and what they stand
// on. It is strict: what is done before what it needs on a real host fails. It does no steps: those
// the real worker does, on this instead of a machine (package apply/local/memory).
type Host struct {
	*Engine
	Site   string
	Name   string
	Cpus   int
	Memory int64
	// Interfaces are those of the machine itself, which nodes and networks may take; nil: whatever
	// they ask for is there.
	Interfaces []string
	// Addresses are those by which other hosts may reach it.
	Addresses []observe.Address
	// Around is what it has besides the site.
	Around   observe.Around
	Encrypts error // why its kernel cannot
	// Named says whether nodes of the host have been told of one another.
	Named func() bool

	lock     sync.Mutex
	networks map[string]spec.Network // by bridge
	layers   map[string]bool
	files    map[string]bool // that have come, by digest
	settings map[string]string
	former   map[string]string // settings before they were first changed
	moved    int               // times that the moving of links was interrupted
}

// NewHost makes a host on which nothing was done.
func NewHost(key, name string, cpus int, memory int64) *Host {
	settings := map[string]string{}
	for key := range kernel.Settings {
		settings[key] = "0"
	}
	h := &Host{
		Engine: New(), Site: key, Name: name, Cpus: cpus, Memory: memory,
		networks: map[string]spec.Network{}, layers: map[string]bool{}, settings: settings,
	}
	h.stands = h.grounds
	return h
}

// Observe returns what is there, but for what is in files.
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
		Engines: map[string]observe.Capabilities{"fake": h.Can},
	}
}

// Present lets things be there without a plan: nodes running, configured and proven, and what they stand on.
func (h *Host) Present(networks []spec.Network, layers map[string]bool, nodes ...*spec.Node) {
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
			engine.Mark{Configured: true, Config: n.Config, Proven: n.Config.Health, Active: holder(n)}
		existing.boot()
		h.nodes[engine.RefOf(n)] = existing
		h.volumes.make(n)
	}
}

// holder reports whether a node, when it is live, has volumes that are not for two, or does
// something that only live nodes do.
func holder(n *spec.Node) bool {
	return !n.Staged && (n.Exclusive() || len(n.Config.Active) > 0)
}

func byName(a, b observe.Network) int {
	return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.Site, b.Site))
}

// Copies returns the releases of which there are copies of volumes.
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
