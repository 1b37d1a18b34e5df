// Package way connects to a node of a site, whichever host runs it.
package way

import (
	"cmp"
	"context"
	"errors"
	"io"
	"io/fs"
	"slices"
	"sync"
	"time"

	"orrery/internal/apply"
	"orrery/internal/control"
	"orrery/internal/host"
	"orrery/internal/observe"
	"orrery/internal/problem"
	"orrery/internal/site"
	"orrery/internal/text/humanize"
)

// A Directory lists the nodes on the hosts of a site.
type Directory struct {
	session *control.Session
	site    *site.Site
	hosts   *apply.Fleet
	on      []cachedNodes // by host
}

// A cachedNodes is the list of nodes on a host, with the time at which it was read.
type cachedNodes struct {
	mutex sync.Mutex
	at    time.Time
	nodes []observe.Node
}

// cacheTTL is how long the list of nodes of a host is used before it is read again.
const cacheTTL = 900 * time.Millisecond

// NewDirectory lists the nodes on the hosts of a site. It returns an error if a host has nodes of another
// site of the same name. The site file may already differ from what exists.
func NewDirectory(ctx context.Context, c *control.Session, s *site.Site) (*Directory, error) {
	f, err := c.Hosts(ctx, s)
	if err != nil {
		return nil, err
	}
	present, err := f.ListNodes(ctx, apply.InspectBrief)
	if err != nil {
		return nil, err
	}
	r := &Directory{session: c, site: s, hosts: f, on: make([]cachedNodes, len(f.All))}
	for i, nodes := range present {
		r.on[i].nodes, r.on[i].at = nodes, time.Now()
	}
	return r, nil
}

// nodesOn returns the nodes of a host, as they are or were a moment ago.
func (r *Directory) nodesOn(ctx context.Context, i int) ([]observe.Node, error) {
	on := &r.on[i]
	on.mutex.Lock()
	defer on.mutex.Unlock()
	if !on.at.IsZero() && time.Since(on.at) < cacheTTL {
		return on.nodes, nil
	}
	present, err := r.hosts.All[i].Nodes.WithOwner(ctx, apply.InspectBrief)
	if err != nil {
		return nil, err
	}
	on.nodes, on.at = present.Nodes, time.Now()
	return on.nodes, nil
}

// lastNodes returns the nodes that were on a host when it was last read.
func (r *Directory) lastNodes(i int) []observe.Node {
	r.on[i].mutex.Lock()
	defer r.on[i].mutex.Unlock()
	return r.on[i].nodes
}

// A location is a node and the host that reports it.
type location struct {
	host *apply.HostClient
	node *observe.Node
}

// locate returns the location of a node that one or several hosts report. If several do, it returns
// the one on the host in the site file. If there is none, it returns an error, because it is unknown
// which host is right.
func (r *Directory) locate(name string, seats []location) (location, error) {
	if len(seats) == 1 {
		return seats[0], nil
	}
	if n, ok := r.site.Node(name); ok {
		for _, s := range seats {
			if s.host.Name == n.Host {
				return s, nil
			}
		}
	}
	return location{}, observe.DuplicateError(name, seats[0].host.Name, seats[1].host.Name)
}

// locations returns the running nodes of the session's release.
func (r *Directory) locations() (map[string]location, error) {
	some := map[string][]location{}
	for i, h := range r.hosts.All {
		nodes := r.lastNodes(i)
		for k := range nodes {
			if n := &nodes[k]; n.State == observe.Running && control.InSelectedRelease(r.session, n) {
				some[n.Name] = append(some[n.Name], location{h, n})
			}
		}
	}
	all := map[string]location{}
	for name := range some {
		s, err := r.locate(name, some[name])
		if err != nil {
			return all, err
		}
		all[name] = s
	}
	return all, nil
}

// Runners returns the runners of these nodes.
func (r *Directory) Runners() (map[string]host.Runner, error) {
	seats, err := r.locations()
	all := map[string]host.Runner{}
	for name, s := range seats {
		in, bad := r.runnerFor(s.host, s.node)
		if bad != nil {
			return all, cmp.Or(err, bad)
		}
		all[name] = in
	}
	return all, err
}

// CopyBetween returns a function by which the host of one node copies a file or directory directly from
// another node, on the same or another host. It returns nil if one of the nodes is on this machine,
// does not run, or may not be entered by the caller.
func (r *Directory) CopyBetween(from, to string) func(ctx context.Context, e apply.CopyTransfer,
	moved func(bytes int64)) error {
	seats, err := r.locations()
	a, b := seats[from], seats[to]
	if err != nil || a.host == nil || b.host == nil {
		return nil
	}
	for _, s := range []location{a, b} {
		if h, ok := r.site.Host(s.host.Name); !ok || h.Local() || control.IsForbidden(r.session, s.node) {
			return nil
		}
	}
	return func(ctx context.Context, e apply.CopyTransfer, moved func(bytes int64)) error {
		e.Host, e.From, e.To = a.host.Name, &a.node.Node, &b.node.Node
		return apply.CopyToNode(ctx, r.hosts, e, b.host.Name, moved)
	}
}

// Runner returns the runner of one of these nodes.
func (r *Directory) Runner(name string) (host.Runner, error) {
	all, err := r.Runners()
	if err != nil {
		return nil, err
	}
	if in, ok := all[name]; ok {
		return in, nil
	}
	return nil, r.Absence(name)
}

// Absence returns why a node cannot be entered: it is frozen, does not run, or is on a host that
// was left out.
func (r *Directory) Absence(name string) error {
	for i := range r.hosts.All {
		for _, n := range r.lastNodes(i) {
			if n.Name == name && n.State == observe.Frozen && control.InSelectedRelease(r.session, &n) {
				return frozenError(&n)
			}
		}
	}
	return NotRunningError(name, r.session.Without...)
}

// frozenError returns the error that a node is frozen, with the cause if known, and the cure.
func frozenError(n *observe.Node) error {
	p := problem.New(problem.Failed, "node %s is frozen", n.Name)
	switch {
	case n.Starved:
		return p.Because(errors.New("its host has no space left for its disks")).
			Try("free space there, then run orrery start %s", n.Name)
	case n.Panic != "":
		return p.Because(errors.New("its kernel has panicked")).
			Try("orrery console --log %[1]s shows its output; orrery restart %[1]s restarts it", n.Name)
	}
	return p.Try("orrery start %s", n.Name)
}

// Live returns the current live instance of a node.
func (r *Directory) Live(ctx context.Context, name string) (*observe.Node, error) {
	var seats []location
	for i, h := range r.hosts.All {
		nodes, err := r.nodesOn(ctx, i)
		if err != nil {
			return nil, err
		}
		for k := range nodes {
			if nodes[k].Name == name && !nodes[k].Staged {
				seats = append(seats, location{h, &nodes[k]})
			}
		}
	}
	if len(seats) == 0 {
		return nil, NotRunningError(name, r.session.Without...)
	}
	s, err := r.locate(name, seats)
	return s.node, err
}

// Log opens the output that the roles of a node printed on its host when they were applied. It
// returns fs.ErrNotExist if they printed nothing.
func (r *Directory) Log(ctx context.Context, name string) (io.ReadCloser, error) {
	var seats []location
	for i, h := range r.hosts.All {
		if slices.ContainsFunc(r.lastNodes(i), func(n observe.Node) bool { return n.Name == name }) {
			seats = append(seats, location{host: h})
		}
	}
	if len(seats) > 0 {
		chosen, err := r.locate(name, seats)
		if err != nil {
			return nil, err
		}
		return chosen.host.Nodes.Log(ctx, name)
	}
	for _, h := range r.hosts.All { // the node was on one of the hosts, if it existed
		if log, err := h.Nodes.Log(ctx, name); !errors.Is(err, fs.ErrNotExist) {
			return log, err
		}
	}
	return nil, fs.ErrNotExist
}

// runnerFor returns the runner of a node. Members get one that refuses to enter nodes in which they
// could become root of the host.
func (r *Directory) runnerFor(h *apply.HostClient, n *observe.Node) (host.Runner, error) {
	if control.IsForbidden(r.session, n) {
		return forbiddenRunner{name: n.Name}, nil
	}
	return h.Nodes.Runner(&n.Node)
}

// Runners returns the runners of all running nodes of a site.
func Runners(ctx context.Context, c *control.Session, s *site.Site) (map[string]host.Runner, error) {
	r, err := NewDirectory(ctx, c, s)
	if err != nil {
		return nil, err
	}
	return r.Runners()
}

// Runner returns the runner of a running node.
func Runner(ctx context.Context, c *control.Session, s *site.Site, name string) (host.Runner, error) {
	r, err := NewDirectory(ctx, c, s)
	if err != nil {
		return nil, err
	}
	return r.Runner(name)
}

// NotRunningError returns the error that a node does not run, or is on a host that was left out.
func NotRunningError(name string, without ...string) error {
	if len(without) > 0 {
		return problem.New(problem.Failed, "node %s does not run, or is on %s, which was left out", name,
			humanize.List(without, 12)).Try("leave out fewer hosts with --without")
	}
	return problem.New(problem.Failed, "node %s does not run", name).Try("orrery up %s", name)
}

// forbiddenRunner is the runner of a node that members may not enter.
type forbiddenRunner struct {
	host.Runner
	name string
}

func (b forbiddenRunner) Run(context.Context, host.Command) error {
	return problem.New(problem.Refused,
		"node %s is privileged: programs in it run as root on this host; nothing was done", b.name).
		Try("ask the administrator of this host")
}
