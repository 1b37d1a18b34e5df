package control

import (
	"context"
	"slices"
	"time"

	"orrery/internal/apply"
	"orrery/internal/drift"
	"orrery/internal/host"
	"orrery/internal/observe"
	"orrery/internal/role"
	"orrery/internal/site"
	"orrery/internal/site/selector"
	"orrery/internal/site/spec"
)

// A NodeStatus is how one instance of a node is.
type NodeStatus struct {
	Node       string            `json:"node"`
	ID         int               `json:"id"`
	Release    int               `json:"release,omitempty"`
	Quarantine bool              `json:"quarantine,omitempty"` // beside the live one
	Host       string            `json:"host"`
	State      string            `json:"state"`
	Health     string            `json:"health"`
	ProvenAt   time.Time         `json:"proven_at,omitzero"` // when its checks were last passed
	Probed     bool              `json:"probed,omitempty"`   // it was looked into just now
	Accel      string            `json:"accel,omitempty"`    // what runs it, if it is a virtual machine that runs
	VHost      bool              `json:"vhost,omitempty"`    // its network cards are served by the host's kernel
	Starved    bool              `json:"starved,omitempty"`  // it stands still because its host had no room for what it wrote to a disk
	Outdated   []string          `json:"outdated,omitempty"` // programs that run it, and that have been replaced on the host
	Roles      []string          `json:"roles"`
	Addresses  map[string]string `json:"addresses"`
	Detail     string            `json:"detail,omitempty"`
	Drift      []observe.Drift   `json:"drift,omitempty"`
	Usage      *apply.Usage      `json:"usage,omitempty"`
	Networks   []string          `json:"-"` // in the order in which they are declared
}

// What the health of a node can be.
const (
	Healthy   = "healthy"
	Unhealthy = "unhealthy"
	Drifted   = "drifted" // its checks pass, or it has none, but it is not as its roles and layers made it
)

// Good reports whether the node is as declared.
func (r NodeStatus) Good() bool {
	return r.State == string(observe.Running) && (r.Health == Healthy || r.Health == "-") || r.State == string(observe.Stopped) && r.Health == "off"
}

// A Status is how the nodes of a site are on this host.
type Status struct {
	host     *apply.Steered
	Nodes    []NodeStatus
	there    []*observe.Node // of each; nil: it is not there
	declared []*site.Node
}

// Status gives the nodes that selectors mean, in the order in which they are declared, with those beside the live ones.
func (c *Session) Status(ctx context.Context, s *site.Site, selectors []string) (*Status, error) {
	if err := c.Allowed(); err != nil {
		return nil, err // the records of nodes are nobody else's to read
	}
	h, err := c.Here(s)
	if err != nil {
		return nil, err
	}
	if s, err = h.Live(); err != nil {
		return nil, err
	}
	nodes, err := selector.Select(s, selectors...)
	if err != nil {
		return nil, err
	}
	there, beside := map[string]*observe.Node{}, map[string][]*observe.Node{}
	list, err := h.Nodes(ctx)
	if err != nil {
		return nil, err
	}
	for i := range list {
		if n := &list[i]; n.Staged {
			beside[n.Name] = append(beside[n.Name], n)
		} else {
			there[n.Name] = n
		}
	}
	all := &Status{host: h}
	makers := map[*site.Site]*spec.Maker{}
	for _, n := range nodes {
		of := h.SiteOf(n)
		if makers[of] == nil {
			makers[of] = spec.NewMaker(of)
		}
		r := newRow(makers[of], n, h.Name, there[n.Name])
		all.add(r, there[n.Name], n)
		for _, other := range beside[n.Name] {
			all.add(quarantined(r, other), other, n)
		}
	}
	return all, nil
}

// Declared gives the node as it is declared of which instance i is.
func (all *Status) Declared(i int) *site.Node { return all.declared[i] }

func (all *Status) add(r NodeStatus, there *observe.Node, declared *site.Node) {
	all.Nodes, all.there, all.declared = append(all.Nodes, r), append(all.there, there), append(all.declared, declared)
}

// CheckHealth tries the health checks of live nodes now.
func (all *Status) CheckHealth(ctx context.Context) {
	var round drift.Round
	for i, r := range all.Nodes {
		if r.Quarantine || r.State != string(observe.Running) {
			continue
		}
		n := all.declared[i]
		duties, err := all.host.DutiesOf(n) // a template of it may be wrong
		var in host.Runner
		if err == nil {
			in, err = all.host.Runner(&all.there[i].Node)
		}
		if err != nil {
			all.Nodes[i].Health, all.Nodes[i].Detail = Unhealthy, err.Error()
			continue
		}
		round.Add(i, role.Allowance(duties), func(ctx context.Context) error { return role.Probe(ctx, in, duties) })
	}
	for i, err := range round.Run(ctx) {
		all.Nodes[i].Health, all.Nodes[i].Detail = Unhealthy, all.host.Redact(err.Error())
	}
}

// Probe tries the health checks of live nodes now, and looks for what has drifted.
func (all *Status) Probe(ctx context.Context) error {
	var nodes []observe.Node
	var rows []int
	for i, n := range all.there {
		if n != nil && !n.Staged {
			nodes, rows = append(nodes, *n), append(rows, i)
		}
	}
	if err := all.host.Probe(ctx, nodes, nil); err != nil {
		return err
	}
	for k, i := range rows {
		r := &all.Nodes[i]
		if r.State != string(observe.Running) {
			continue
		}
		r.Probed, r.Drift = true, nodes[k].Drift
		r.judge()
	}
	return nil
}

// judge lets the health of a node be what a look into it has found.
func (r *NodeStatus) judge() {
	sick := func(d observe.Drift) bool { return d.Kind == observe.DriftHealth || d.Kind == observe.DriftNode }
	switch {
	case slices.ContainsFunc(r.Drift, sick):
		r.Health = Unhealthy
	case len(r.Drift) > 0:
		r.Health = Drifted
	case r.Health == "not proven":
		r.Health = Healthy
	}
}

// Measure notes what running nodes use now. How many processors that are is told from one reading to the next: what it gives is for the next round,
// and without any of one before it waits for a moment.
func (all *Status) Measure(ctx context.Context, before map[int]host.Sample) (map[int]host.Sample, error) {
	sample := func() map[int]host.Sample {
		now := map[int]host.Sample{}
		for i, r := range all.Nodes {
			if r.State == string(observe.Running) {
				now[r.ID] = all.host.Sample(&all.there[i].Node)
			}
		}
		return now
	}
	if before == nil {
		before = sample()
		if err := host.Pause(ctx, 500*time.Millisecond); err != nil {
			return nil, err
		}
	}
	now := sample()
	for i := range all.Nodes {
		r := &all.Nodes[i]
		if n := all.there[i]; n != nil {
			was, has := before[r.ID]
			if !has {
				was = now[r.ID]
			}
			r.Usage = all.host.Usage(ctx, n, was, now[r.ID])
		}
	}
	return now, ctx.Err()
}

// SickFirst puts those first that are not as declared, otherwise as they are.
func (all *Status) SickFirst() {
	slices.SortStableFunc(all.Nodes, func(a, b NodeStatus) int { return a.rank() - b.rank() })
}

func (r NodeStatus) rank() int {
	if r.Good() || r.Quarantine {
		return 1
	}
	return 0
}

// quarantined gives the status of an instance beside the live one.
func quarantined(of NodeStatus, n *observe.Node) NodeStatus {
	r := of
	r.ID, r.Release, r.Quarantine, r.State, r.Health, r.Detail, r.ProvenAt = n.ID, n.Release, true, string(n.State), "-", "", n.ProvenAt
	r.Accel, r.VHost, r.Starved, r.Outdated = n.Accel, n.VHost, n.Starved, n.Outdated
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

func newRow(maker *spec.Maker, n *site.Node, hostName string, has *observe.Node) NodeStatus {
	r := NodeStatus{Node: n.Name, ID: n.FullID(), Release: n.Release, Host: hostName, State: "absent", Health: "-", Roles: n.Roles, Addresses: map[string]string{}}
	for _, nic := range n.NICs {
		r.Networks = append(r.Networks, nic.Network)
		r.Addresses[nic.Network] = nic.Address.String()
	}
	if has == nil {
		return r
	}
	r.State = string(has.State)
	r.Accel, r.VHost, r.Starved, r.Outdated = has.Accel, has.VHost, has.Starved, has.Outdated
	r.ID, r.Release = has.ID, has.Release // others than declared, if a switch was interrupted
	if has.Proven != "" {
		r.ProvenAt = has.ProvenAt
	}
	wanted, err := maker.Node(n)
	switch {
	case has.State == observe.Stopped && !n.Autostart:
		r.Health = "off"
	case has.State != observe.Running:
	case !has.Configured:
		r.Health = "not configured"
	case err == nil && wanted.Config.Health != "" && has.Proven == "":
		r.Health = "not proven"
	case err == nil && wanted.Config.Health == "":
		r.Health = "-"
	default:
		r.Health = Healthy
	}
	return r
}
