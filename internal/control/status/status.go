// Package status reports the state of a site's nodes on its hosts.
package status

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"orrery/internal/apply"
	"orrery/internal/drift"
	"orrery/internal/host"
	"orrery/internal/observe"
	"orrery/internal/role"
	"orrery/internal/site"
	"orrery/internal/site/spec"
	"orrery/internal/text/sanitize"
)

// A Node is how one instance of a node is.
type Node struct {
	Node       string    `json:"node"`
	ID         int       `json:"id"`
	Release    int       `json:"release,omitempty"`
	Quarantine bool      `json:"quarantine,omitempty"` // beside the live one
	Host       string    `json:"host"`
	State      string    `json:"state"`
	Health     string    `json:"health"`
	ProvenAt   time.Time `json:"proven_at,omitzero"` // when its checks were last passed
	Probed     bool      `json:"probed,omitempty"`   // it was looked into just now
	Accel      string    `json:"accel,omitempty"`    // what runs it, if it is a virtual machine that runs
	VHost      bool      `json:"vhost,omitempty"`    // its network cards are served by the host's kernel
	// it stands still because its host had no room for what it wrote to a disk
	Starved bool `json:"starved,omitempty"`
	// it stands still because its kernel has panicked: what that printed at last
	Panic    string   `json:"panic,omitempty"`
	Rootless bool     `json:"rootless,omitempty"` // it runs without what shows it its root
	Unlinked []string `json:"unlinked,omitempty"` // networks to which it has no link any more although it runs
	// programs that run it, and that have been replaced on the host
	Outdated []string `json:"outdated,omitempty"`
	// networks of which a run that was killed has left open whether it has them
	Doubt     []string          `json:"doubt,omitempty"`
	Roles     []string          `json:"roles"`
	Addresses map[string]string `json:"addresses"`
	Detail    string            `json:"detail,omitempty"`
	Drift     []observe.Drift   `json:"drift,omitempty"`
	Usage     *apply.Usage      `json:"usage,omitempty"`
	Networks  []string          `json:"-"` // in the order in which they are declared
}

// Absent is the state of a node that is not there.
const Absent = "absent"

// What the health of a node can be.
const (
	Healthy   = "healthy"
	Unhealthy = "unhealthy"
	Unknown   = "unknown" // it may be on a host of which nothing is known; so is its state
	Drifted   = "drifted" // its checks pass, or it has none, but it is not as its roles and layers made it
)

// Good reports whether the node is as declared.
func (r Node) Good() bool {
	return r.State == string(observe.Running) && (r.Health == Healthy || r.Health == "-") ||
		r.State == string(observe.Stopped) && r.Health == "off"
}

// A Status is how the nodes of a site are on its hosts.
type Status struct {
	Fleet    *apply.Fleet // the hosts that were asked
	Nodes    []Node
	Silent   error           // why hosts do not answer of which nothing is known
	there    []*observe.Node // of each; nil: it is not there
	declared []*site.Node
}

// Of tells how declared nodes are, in their order, with those beside the live ones.
func Of(ctx context.Context, f *apply.Fleet, nodes []*site.Node) (*Status, error) {
	type instance struct {
		*observe.Node
		host string // a move that was cut short may have left it on another one than what is live
	}
	live, beside, on := map[string]*observe.Node{}, map[string][]instance{}, map[string]string{}
	lists, err := f.Present(ctx, apply.Closely)
	if err != nil {
		return nil, err
	}
	belongs := map[string]string{}
	for _, n := range nodes {
		belongs[n.Name] = n.Host
	}
	for k, h := range f.All {
		for i := range lists[k] {
			if n := &lists[k][i]; on[n.Name] != "" && on[n.Name] == belongs[n.Name] && h.Name != on[n.Name] {
				continue // another host has left it there, or says so
			} else if n.Staged {
				beside[n.Name] = append(beside[n.Name], instance{n, h.Name})
			} else {
				live[n.Name], on[n.Name] = n, h.Name
			}
		}
	}
	all := &Status{Fleet: f}
	makers := map[*site.Site]*spec.Maker{}
	for _, n := range nodes {
		of := f.All[0].SiteOf(n)
		if makers[of] == nil {
			makers[of] = spec.NewMaker(of)
		}
		r := newRow(makers[of], n, whereabouts(f, n, on[n.Name]), live[n.Name])
		if live[n.Name] == nil && len(f.Unknown) > 0 {
			r.State = Unknown
		}
		all.add(r, live[n.Name], n)
		for _, other := range beside[n.Name] {
			row := quarantined(r, other.Node)
			row.Host = other.host
			all.add(row, other.Node, n)
		}
	}
	return all, nil
}

// whereabouts returns the host of a node: that on which it is, else that on which it is to be; "-":
// that is for the next plan to say.
func whereabouts(f *apply.Fleet, n *site.Node, on string) string {
	if len(f.All) == 1 && len(f.Unknown) == 0 {
		return f.All[0].Name
	}
	return cmp.Or(on, n.Host, "-")
}

// host returns the host of an instance that is there.
func (all *Status) host(i int) *apply.Steered {
	h, _ := all.Fleet.Host(all.Nodes[i].Host)
	return h
}

// Unknown returns the hosts of which nothing is known.
func (all *Status) Unknown() []string { return all.Fleet.Unknown }

// Declared returns the node as it is declared of which instance i is.
func (all *Status) Declared(i int) *site.Node { return all.declared[i] }

func (all *Status) add(r Node, actual *observe.Node, declared *site.Node) {
	all.Nodes, all.there, all.declared = append(all.Nodes, r), append(all.there, actual), append(all.declared, declared)
}

// CheckHealth tries the health checks of live nodes now.
func (all *Status) CheckHealth(ctx context.Context) {
	var round drift.Round
	for i, r := range all.Nodes {
		if r.Quarantine || r.State != string(observe.Running) {
			continue
		}
		n := all.declared[i]
		duties, err := all.host(i).DutiesOf(n) // a template of it may be wrong
		var in host.Runner
		if err == nil {
			in, err = all.host(i).Nodes.Runner(&all.there[i].Node)
		}
		if err != nil {
			all.Nodes[i].Health, all.Nodes[i].Detail = Unhealthy, err.Error()
			continue
		}
		round.Add(i, role.Allowance(duties), func(ctx context.Context) error { return role.Probe(ctx, in, duties) })
	}
	for i, err := range round.Run(ctx) {
		all.Nodes[i].Health, all.Nodes[i].Detail = Unhealthy, all.Fleet.Redact(err.Error())
	}
}

// Probe tries the health checks of live nodes now, and looks for what has drifted.
func (all *Status) Probe(ctx context.Context) error {
	return all.Fleet.Each(func(_ int, h *apply.Steered) error { return all.probeOn(ctx, h) })
}

// probeOn looks into the nodes of one host.
func (all *Status) probeOn(ctx context.Context, h *apply.Steered) error {
	var nodes []observe.Node
	var rows []int
	for i, n := range all.there {
		if n != nil && !n.Staged && all.Nodes[i].Host == h.Name {
			nodes, rows = append(nodes, *n), append(rows, i)
		}
	}
	if err := h.Probe(ctx, nodes, nil); err != nil {
		return err
	}
	for k, i := range rows {
		r := &all.Nodes[i]
		if r.State != string(observe.Running) {
			continue
		}
		r.recall(nil) // what is found now is newer
		r.Probed, r.Drift = true, nodes[k].Drift
		r.judge()
	}
	return nil
}

// judge lets the health of a node be what a look into it has found.
func (r *Node) judge() {
	switch {
	case slices.ContainsFunc(r.Drift, observe.Drift.Sick):
		r.Health = Unhealthy
	case len(r.Drift) > 0:
		r.Health = Drifted
	case r.Health == "not proven":
		r.Health = Healthy
	}
}

// Measure notes what running nodes use now. How many processors that are is told from one reading
// to the next: what it returns is for the next round, and without any of one before it waits for a
// moment. A host that does not say what its nodes use is added to Silent.
func (all *Status) Measure(ctx context.Context, before map[int]host.Sample) (map[int]host.Sample, error) {
	if before == nil {
		before = all.meter(ctx, nil)
		if err := host.Pause(ctx, 500*time.Millisecond); err != nil {
			return nil, err
		}
	}
	return all.meter(ctx, before), ctx.Err()
}

// meter asks each host once what its nodes use since the samples before, unless that is nil, and
// returns their samples by id.
func (all *Status) meter(ctx context.Context, before map[int]host.Sample) map[int]host.Sample {
	now, mutex := map[int]host.Sample{}, sync.Mutex{}
	err := all.Fleet.Each(func(_ int, h *apply.Steered) error {
		var rows []int
		var nodes []observe.Node
		for i, n := range all.there {
			if n != nil && all.Nodes[i].Host == h.Name {
				rows, nodes = append(rows, i), append(nodes, *n)
			}
		}
		if len(nodes) == 0 {
			return nil
		}
		read, err := h.Nodes.ReadUsage(ctx, nodes, before)
		if err != nil {
			return err
		}
		mutex.Lock()
		defer mutex.Unlock()
		for k, i := range rows {
			if all.Nodes[i].State == string(observe.Running) {
				now[nodes[k].ID] = read[k].Sample
			}
			all.Nodes[i].Usage = read[k].Usage
		}
		return nil
	})
	if ctx.Err() == nil && before != nil {
		all.Silent = errors.Join(all.Silent, err)
	}
	return now
}

// SickFirst puts those first that are not as declared, otherwise as they are.
func (all *Status) SickFirst() {
	slices.SortStableFunc(all.Nodes, func(a, b Node) int { return a.rank() - b.rank() })
}

func (r Node) rank() int {
	if r.Good() || r.Quarantine {
		return 1
	}
	return 0
}

// quarantined returns the status of an instance beside the live one.
func quarantined(of Node, n *observe.Node) Node {
	r := of
	r.ID, r.Release, r.Quarantine, r.State, r.Health, r.Detail, r.ProvenAt = n.ID, n.Release, true, string(n.State), "-",
		"", n.ProvenAt
	r.observed(n)
	switch {
	case n.State != observe.Running:
	case slices.ContainsFunc(n.Mounts, func(m spec.Mount) bool { return m.Copy == spec.NoCopy }):
		r.Health = "retired" // it lets others have its volumes
	case !n.Configured:
		r.Health = "not configured"
	case n.Config.Health != "" && n.Proven != n.Config.Health:
		r.Health = "not proven"
	case n.Config.Health != "":
		r.Health = Healthy
	}
	return r
}

// recall lets the health of a node that counts as healthy be what was last found, or what it was
// without that if s is nil.
func (r *Node) recall(s *observe.Sickness) {
	switch {
	case s != nil && r.Health == Healthy:
		r.Health, r.Detail = Unhealthy, "found "+s.At.Format(time.DateTime)+" UTC: "+sanitize.Line(s.Found)
	case s == nil && r.Health == Unhealthy && !r.Rootless:
		r.Health, r.Detail = Healthy, ""
	}
}

// observed takes over what a host says of a node that runs.
func (r *Node) observed(n *observe.Node) {
	r.Accel, r.VHost, r.Starved, r.Panic, r.Rootless = n.Accel, n.VHost, n.Starved, n.Panic, n.Rootless
	r.Unlinked, r.Outdated, r.Doubt = n.Unlinked, n.Outdated, n.Doubt
}

func newRow(maker *spec.Maker, n *site.Node, hostName string, actual *observe.Node) Node {
	r := Node{Node: n.Name, ID: n.FullID(), Release: n.Release, Host: hostName, State: Absent, Health: "-",
		Roles: n.Roles, Addresses: map[string]string{}}
	for _, nic := range n.NICs {
		r.Networks = append(r.Networks, nic.Network)
		r.Addresses[nic.Network] = nic.Address.String()
	}
	if actual == nil {
		return r
	}
	r.State = string(actual.State)
	r.observed(actual)
	r.ID, r.Release = actual.ID, actual.Release // others than declared, if a switch was interrupted
	if actual.Proven != "" {
		r.ProvenAt = actual.ProvenAt
	}
	wanted, err := maker.Node(n)
	switch {
	case actual.State == observe.Stopped && !n.Autostart:
		r.Health = "off"
	case actual.State != observe.Running:
	case actual.Rootless:
		r.Health = Unhealthy
	case !actual.Configured:
		r.Health = "not configured"
	case err == nil && wanted.Config.Health != "" && actual.Proven == "":
		r.Health = "not proven"
	case err == nil && wanted.Config.Health == "":
		r.Health = "-"
	default:
		r.Health = Healthy
		r.recall(actual.Sick)
	}
	return r
}
