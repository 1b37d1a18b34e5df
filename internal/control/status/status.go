// Package status reports the state of a site's nodes on its hosts, as rows and for a drawing.
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
	"orrery/internal/plan"
	"orrery/internal/role"
	"orrery/internal/site"
	"orrery/internal/site/spec"
	"orrery/internal/text/sanitize"
)

// A Node is the state of one instance of a node.
type Node struct {
	Node       string    `json:"node"`
	ID         int       `json:"id"`
	Release    int       `json:"release,omitempty"`
	Quarantine bool      `json:"quarantine,omitempty"` // beside the live instance
	Host       string    `json:"host"`
	State      string    `json:"state"`
	Health     string    `json:"health"`
	ProvenAt   time.Time `json:"proven_at,omitzero"` // when its checks last passed in a run
	HealthAt   time.Time `json:"health_at,omitzero"` // when Health was found, or zero if it needs no check
	Stale      bool      `json:"stale,omitempty"`    // HealthAt is longer ago than Fresh
	Failure    *Failure  `json:"failure,omitempty"`  // why the node is not configured or not proven
	Undeclared bool      `json:"undeclared,omitempty"`
	Probed     bool      `json:"probed,omitempty"` // the node was just probed
	Accel      string    `json:"accel,omitempty"`  // its accelerator, if it is a running virtual machine
	VHost      bool      `json:"vhost,omitempty"`  // its network interfaces are served by the host's kernel
	// it is frozen because its host had no room for data that it wrote to a disk
	Starved bool `json:"starved,omitempty"`
	// it is frozen because its kernel has panicked: the last output of the kernel
	Panic    string   `json:"panic,omitempty"`
	Rootless bool     `json:"rootless,omitempty"` // it runs without the process that serves its root file system
	Unlinked []string `json:"unlinked,omitempty"` // networks to which it has no link although it runs
	// programs that run it and have been replaced on the host
	Outdated []string `json:"outdated,omitempty"`
	// networks to which it may or may not be linked, because a run was killed
	Doubt     []string          `json:"doubt,omitempty"`
	Roles     []string          `json:"roles"`
	Addresses map[string]string `json:"addresses"` // as declared
	// AnswersAt has the addresses of the running node that are not the declared ones, by network.
	AnswersAt map[string]string `json:"answers_at,omitempty"`
	// ports of its host that lead to it
	Published []Published     `json:"published,omitempty"`
	Detail    string          `json:"detail,omitempty"`
	Drift     []observe.Drift `json:"drift,omitempty"`
	// secrets of which other nodes have a newer generation
	Rotations []Rotation   `json:"rotations,omitempty"`
	Usage     *apply.Usage `json:"usage,omitempty"`
	// what it has little left of
	Shortages []observe.Shortage `json:"shortages,omitempty"`
	Networks  []string           `json:"-"` // in the order of the site file
}

// Absent is the state of a node that does not exist.
const Absent = "absent"

// Possible values of a node's health.
const (
	Healthy   = "healthy"
	Unhealthy = "unhealthy"
	Unknown   = "unknown" // the node may be on an unknown host; its state has the same value
	// its checks pass, or it has none, but it has been changed since its roles and layers were
	// applied
	Drifted = "drifted"
	// its last configure or check failed, so that it is not configured or not proven
	Failed = "failed"
)

// Fresh is how long the health that a check found counts as the current one.
const Fresh = time.Minute

// A Failure is the failure of the last step on a node, and the verb that shows more.
type Failure struct {
	observe.StepFailure
	See string `json:"see"`
}

// IsGood reports whether the node is in its declared state.
func (r Node) IsGood() bool {
	return !r.Undeclared && (r.State == string(observe.Running) && (r.Health == Healthy || r.Health == "-") ||
		r.State == string(observe.Stopped) && r.Health == "off")
}

// A Status is the state of a site's nodes on its hosts.
type Status struct {
	Fleet    *apply.Fleet // the hosts that were asked
	Nodes    []Node
	Silent   error           // why the unknown hosts do not answer
	there    []*observe.Node // for each row, or nil if it does not exist
	declared []*site.Node
}

// Of returns the state of declared nodes, in their order, including instances beside the live ones.
// If whole is not nil, the live nodes that this site does not declare follow.
func Of(ctx context.Context, f *apply.Fleet, nodes []*site.Node, whole *site.Site) (*Status, error) {
	type instance struct {
		*observe.Node
		host string // an interrupted move may have left it on another host than the live instance
	}
	live, beside, on := map[string]*observe.Node{}, map[string][]instance{}, map[string]string{}
	lists, err := f.ListNodes(ctx, apply.InspectFull)
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
				continue // left on another host, or claimed by it
			} else if n.Staged {
				beside[n.Name] = append(beside[n.Name], instance{n, h.Name})
			} else {
				live[n.Name], on[n.Name] = n, h.Name
			}
		}
	}
	all := &Status{Fleet: f}
	makers := map[*site.Site]*spec.Builder{}
	for _, n := range nodes {
		of := f.All[0].SiteOf(n)
		if makers[of] == nil {
			makers[of] = spec.NewBuilder(of)
		}
		r := newRow(makers[of], n, hostNameOf(f, n, on[n.Name]), live[n.Name])
		if live[n.Name] != nil {
			r.Published = publishedPorts(makers[of], n, r.Host)
		}
		if live[n.Name] == nil && len(f.Unknown) > 0 {
			r.State = Unknown
		}
		all.add(r, live[n.Name], n)
		for _, other := range beside[n.Name] {
			row := quarantineRow(r, other.Node)
			row.Host = other.host
			all.add(row, other.Node, n)
		}
	}
	all.markRotations()
	if whole != nil {
		for k, h := range f.All {
			all.addUndeclared(whole, h.Name, lists[k])
		}
	}
	return all, nil
}

// hostNameOf returns the host of a node: the one that has it, else the one in the site file, or
// "-" if the next plan will choose it.
func hostNameOf(f *apply.Fleet, n *site.Node, on string) string {
	if len(f.All) == 1 && len(f.Unknown) == 0 {
		return f.All[0].Name
	}
	return cmp.Or(on, n.Host, "-")
}

// host returns the host of an existing instance.
func (all *Status) host(i int) *apply.HostClient {
	h, _ := all.Fleet.Host(all.Nodes[i].Host)
	return h
}

// Unknown returns the names of the unknown hosts.
func (all *Status) Unknown() []string { return all.Fleet.Unknown }

// Declared returns the declared node of instance i.
func (all *Status) Declared(i int) *site.Node { return all.declared[i] }

func (all *Status) add(r Node, actual *observe.Node, declared *site.Node) {
	r.Stale = !r.HealthAt.IsZero() && time.Since(r.HealthAt) >= Fresh
	all.Nodes, all.there, all.declared = append(all.Nodes, r), append(all.there, actual), append(all.declared, declared)
}

// CheckHealth runs the health checks of live nodes now.
func (all *Status) CheckHealth(ctx context.Context) {
	var round drift.Scan
	for i, r := range all.Nodes {
		if r.Quarantine || r.Undeclared || r.State != string(observe.Running) {
			continue
		}
		n := all.declared[i]
		duties, err := all.host(i).DutiesOf(n) // one of its templates may be wrong
		var in host.Runner
		if err == nil {
			in, err = all.host(i).Nodes.Runner(&all.there[i].Node)
		}
		if err != nil {
			all.Nodes[i].Health, all.Nodes[i].Detail = Unhealthy, err.Error()
			continue
		}
		round.Add(i, role.MaxProbeTime(duties), func(ctx context.Context) error { return role.Probe(ctx, in, duties) })
	}
	for i, err := range round.Run(ctx) {
		all.Nodes[i].Health, all.Nodes[i].Detail = Unhealthy, all.Fleet.Redact(err.Error())
	}
}

// Probe runs the health checks of live nodes now, and looks for drift.
func (all *Status) Probe(ctx context.Context) error {
	return all.Fleet.ForEach(func(_ int, h *apply.HostClient) error { return all.probeOn(ctx, h) })
}

// probeOn probes the nodes of one host.
func (all *Status) probeOn(ctx context.Context, h *apply.HostClient) error {
	var nodes []observe.Node
	var rows []int
	for i, n := range all.there {
		if n != nil && !n.Staged && all.Nodes[i].Host == h.Name {
			nodes, rows = append(nodes, *n), append(rows, i)
		}
	}
	if err := h.DetectDrift(ctx, nodes, nil); err != nil {
		return err
	}
	for k, i := range rows {
		r := &all.Nodes[i]
		if r.State != string(observe.Running) || r.Undeclared {
			continue
		}
		r.setLastHealth(nil) // the new result replaces it
		r.Probed, r.Drift = true, nodes[k].Drift
		r.HealthAt, r.Stale = time.Now().UTC(), false
		r.setHealth()
	}
	return nil
}

// setHealth sets the health of a node from the result of a probe.
func (r *Node) setHealth() {
	switch {
	case slices.ContainsFunc(r.Drift, observe.Drift.Unhealthy):
		r.Health = Unhealthy
	case len(r.Drift) > 0:
		r.Health = Drifted
	case r.Health == "not proven", r.Health == Failed && r.Failure.Step == string(plan.CheckNode):
		r.Health, r.Failure = Healthy, nil
	}
}

// Measure adds the current resource usage of running nodes. Processor usage is computed from two
// readings. Measure returns its reading for the next round. Without an earlier reading, it waits
// for a moment between two of its own. It adds hosts that do not report usage to Silent.
func (all *Status) Measure(ctx context.Context, before map[int]host.Sample) (map[int]host.Sample, error) {
	if before == nil {
		before = all.sampleUsage(ctx, nil)
		if err := host.Sleep(ctx, 500*time.Millisecond); err != nil {
			return nil, err
		}
	}
	return all.sampleUsage(ctx, before), ctx.Err()
}

// sampleUsage asks each host once for the usage of its nodes since the samples before, unless these are
// nil. It returns the new samples by node ID.
func (all *Status) sampleUsage(ctx context.Context, before map[int]host.Sample) map[int]host.Sample {
	now, mutex := map[int]host.Sample{}, sync.Mutex{}
	err := all.Fleet.ForEach(func(_ int, h *apply.HostClient) error {
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

// UnhealthyFirst moves nodes that are not in their declared state to the front, and otherwise keeps the
// order.
func (all *Status) UnhealthyFirst() {
	slices.SortStableFunc(all.Nodes, func(a, b Node) int { return a.rank() - b.rank() })
}

func (r Node) rank() int {
	if r.IsGood() || r.Quarantine {
		return 1
	}
	return 0
}

// quarantineRow returns the status of an instance beside the live one.
func quarantineRow(of Node, n *observe.Node) Node {
	r := of
	r.ID, r.Release, r.Quarantine, r.State, r.Health, r.Detail, r.ProvenAt = n.ID, n.Release, true, string(n.State), "-",
		"", n.ProvenAt
	r.HealthAt, r.Failure, r.AnswersAt = time.Time{}, nil, nil // those of the live instance
	r.setObserved(n)
	r.Published = nil
	switch {
	case n.State != observe.Running:
	case slices.ContainsFunc(n.Mounts, func(m spec.Mount) bool { return m.Copy == spec.NoCopy }):
		r.Health = "retired" // it gave its volumes to other instances
	case !n.Configured:
		r.Health = "not configured"
		r.setFailure(n.Failed)
	case n.Config.Health != "" && n.Proven != n.Config.Health:
		r.Health = "not proven"
		r.setFailure(n.Failed)
	case n.Config.Health != "":
		r.Health, r.HealthAt = Healthy, n.ProvenAt
	}
	return r
}

// setFailure sets the health of a node that is not configured or not proven, if the last attempt
// failed.
func (r *Node) setFailure(f *observe.StepFailure) {
	if f == nil {
		return
	}
	r.Health, r.HealthAt, r.Failure = Failed, f.At, &Failure{StepFailure: *f, See: "orrery logs " + r.Node}
	if f.Step == string(plan.CheckNode) {
		r.Failure.See = "orrery status --probe " + r.Node
	}
}

// setLastHealth sets the health of a node that counts as healthy to what was last found. If s is nil, it
// resets the health.
func (r *Node) setLastHealth(s *observe.HealthFailure) {
	switch {
	case s != nil && r.Health == Healthy:
		r.HealthAt = s.At
		r.Health, r.Detail = Unhealthy, "found "+s.At.Format(time.DateTime)+" UTC: "+sanitize.Line(s.Found)
	case s == nil && r.Health == Unhealthy && !r.Rootless:
		r.Health, r.Detail = Healthy, ""
	}
}

// setObserved copies what a host reports about a running node.
func (r *Node) setObserved(n *observe.Node) {
	r.Accel, r.VHost, r.Starved, r.Panic, r.Rootless = n.Accel, n.VHost, n.Starved, n.Panic, n.Rootless
	r.Unlinked, r.Outdated, r.Doubt = n.Unlinked, n.Outdated, n.Doubt
	r.Shortages = knownShortages(n)
}

// knownShortages returns the shortages of a node of which this program knows what they are of. They may
// come from another host.
func knownShortages(n *observe.Node) (all []observe.Shortage) {
	for _, s := range n.Shortages {
		ofVolume := s.Of == observe.ShortVolume &&
			slices.ContainsFunc(n.Mounts, func(m spec.Mount) bool { return m.Volume == s.Volume })
		if s.Short() && (ofVolume || s.Volume == "" && (s.Of == observe.ShortDisk || s.Of == observe.ShortMemory)) {
			all = append(all, s)
		}
	}
	return all
}

func newRow(maker *spec.Builder, n *site.Node, hostName string, actual *observe.Node) Node {
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
	r.setObserved(actual)
	r.setActualAddresses(actual)
	r.ID, r.Release = actual.ID, actual.Release // may differ from the declared ones if a switch was interrupted
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
		r.setFailure(actual.Failed)
	case err == nil && wanted.Config.Health != "" && actual.Proven == "" &&
		(actual.ProbedAt.IsZero() || actual.Sick != nil):
		r.Health = "not proven"
		r.setFailure(actual.Failed)
	case err == nil && wanted.Config.Health == "":
		r.Health = "-"
	default:
		r.Health, r.HealthAt = Healthy, actual.ProvenAt
		if !actual.ProbedAt.IsZero() {
			r.HealthAt = actual.ProbedAt
		}
		r.setLastHealth(actual.Sick)
	}
	return r
}
