package fake

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"

	"orrery/internal/engine"
	"orrery/internal/host"
	"orrery/internal/observe"
	"orrery/internal/plan"
	"orrery/internal/site"
	"orrery/internal/site/spec"
)

// Host is a machine in memory, as one site sees it: an apply.Worker whose nodes are those of a fake engine. It is strict: a step that
// comes before what it needs on a real host fails.
type Host struct {
	*Engine
	Site   string
	Name   string
	Cpus   int
	Memory int64
	// Configure, if set, is done to a node by a configure step; what it puts there is put back by an undo.
	Configure func(ctx context.Context, n *spec.Node, r host.Runner) error
	// Healthy, if set, says whether a node is.
	Healthy func(n *spec.Node) error
	// Releases gives, by number, the site as a release makes it: what an activate step has done of it is on record afterwards.
	Releases map[int]*site.Site

	lock sync.Mutex
	// Interfaces are those of the machine itself, which nodes and networks may take; nil: whatever they ask for is there.
	Interfaces []string

	networks map[string]spec.Network // by bridge
	layers   map[string]bool
	names    string // digest; "": not written
	before   string // the names that the last WriteNames replaced
	settings map[string]string
	former   map[string]string      // settings before the first PrepareHost
	applied  map[engine.Ref]applied // what nodes were like before the last ConfigureNode
	releases observe.Releases
	kept     map[int]bool // releases of which something is kept
	moved    int          // times that a MoveLinks was interrupted
}

type applied struct {
	mark  engine.Mark
	files tree
}

// NewHost makes a host on which nothing was done.
func NewHost(key, name string, cpus int, memory int64) *Host {
	settings := map[string]string{}
	for key := range plan.HostSettings {
		settings[key] = "0"
	}
	return &Host{
		Engine: New(), Site: key, Name: name, Cpus: cpus, Memory: memory,
		networks: map[string]spec.Network{}, layers: map[string]bool{},
		settings: settings, applied: map[engine.Ref]applied{}, kept: map[int]bool{},
	}
}

// Observe gives what is there.
func (h *Host) Observe() observe.Host {
	nodes, err := h.List(context.Background(), h.Site)
	if err != nil {
		panic(err) // a list in memory does not fail
	}
	volumes := h.Volumes(h.Site)
	slices.SortFunc(volumes, func(a, b observe.Volume) int { return cmp.Compare(a.Path, b.Path) })
	copies := h.copies(h.Site)
	h.lock.Lock()
	defer h.lock.Unlock()
	o := observe.Host{
		Name: h.Name, Cpus: h.Cpus, Memory: h.Memory, Nodes: nodes, Volumes: volumes,
		Layers: maps.Clone(h.layers), Names: h.names, Settings: maps.Clone(h.settings),
		Releases: cloneOf(h.releases), Engines: map[string]observe.Capabilities{"fake": h.Can},
	}
	o.Releases.Staged = slices.Compact(slices.Sorted(slices.Values(append(copies, slices.Collect(maps.Keys(h.kept))...))))
	for _, made := range h.networks {
		n := observe.Network{Network: made}
		if n.Kind == spec.VethPair && h.passedThrough(made, nodes) {
			n.Drifted(observe.EndsGone)
		}
		o.Networks = append(o.Networks, n)
	}
	slices.SortFunc(o.Networks, func(a, b observe.Network) int {
		return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.Site, b.Site))
	})
	return o
}

// Keep notes that something of a release is kept on the host, as staging it does.
func (h *Host) Keep(release int) {
	h.lock.Lock()
	defer h.lock.Unlock()
	h.kept[release] = true
}

// SetReleases lets the host take down what is live and under way, as is done beside the steps of a plan.
func (h *Host) SetReleases(r observe.Releases) {
	h.lock.Lock()
	defer h.lock.Unlock()
	h.releases = cloneOf(r)
}

// cloneOf keeps what the host knows apart from what callers hold.
func cloneOf(r observe.Releases) observe.Releases {
	r.Active, r.Former, r.Confirmed = maps.Clone(r.Active), maps.Clone(r.Former), slices.Clone(r.Confirmed)
	if r.Switch != nil {
		s := *r.Switch
		s.To, s.End = maps.Clone(s.To), maps.Clone(s.End)
		r.Switch = &s
	}
	if r.Trial != nil {
		t := *r.Trial
		t.Back = maps.Clone(t.Back)
		r.Trial = &t
	}
	return r
}

// Present lets things be there without a plan: nodes running, configured and proven, and what they stand on.
func (h *Host) Present(networks []spec.Network, names string, layers map[string]bool, nodes ...*spec.Node) {
	h.lock.Lock()
	for _, n := range networks {
		h.networks[n.Bridge] = n
	}
	h.names = names
	maps.Copy(h.layers, layers)
	maps.Copy(h.settings, plan.HostSettings)
	h.lock.Unlock()
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, n := range nodes {
		there := newNode(n)
		there.state, there.mark = observe.Running, engine.Mark{Configured: true, Config: n.Config, Proven: n.Config.Health, Active: holder(n)}
		there.boot()
		h.nodes[engine.RefOf(n)] = there
		h.makeVolumes(n)
	}
}

// Do does a step.
func (h *Host) Do(ctx context.Context, s *plan.Step, say func(string)) error {
	if s.Host != h.Name {
		return fmt.Errorf("step %s is for host %s, not for %s", s, s.Host, h.Name)
	}
	if s.ForNode() {
		return h.doNode(ctx, s)
	}
	say(s.Reason)
	what := h.begin(ctx, string(s.Kind), s.Subject)
	if what.err != nil {
		return what.err
	}
	halfway := what.halfway(ctx)
	h.lock.Lock()
	defer h.lock.Unlock()
	return h.doShared(s, halfway)
}
