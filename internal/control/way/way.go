// Package way leads into the nodes of a site, on whichever of its hosts they are.
package way

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"sync"
	"time"

	"orrery/internal/apply"
	"orrery/internal/control"
	"orrery/internal/host"
	"orrery/internal/observe"
	"orrery/internal/phrase"
	"orrery/internal/problem"
	"orrery/internal/site"
)

// A Roll is which nodes are on the hosts of a site.
type Roll struct {
	session *control.Session
	hosts   *apply.Fleet
	on      []sighting // by host
}

// A sighting is what was on a host a moment ago.
type sighting struct {
	mutex sync.Mutex
	at    time.Time
	nodes []observe.Node
}

// fresh is how long nobody looks again, of all who want to know of a host which of its nodes are live.
const fresh = 900 * time.Millisecond

// Call looks which nodes are on the hosts of a site. The site file may be ahead of what is there.
func Call(ctx context.Context, c *control.Session, s *site.Site) (*Roll, error) {
	f, err := c.Hosts(ctx, s)
	if err != nil {
		return nil, err
	}
	r := &Roll{session: c, hosts: f, on: make([]sighting, len(f.All))}
	return r, f.Each(func(i int, _ *apply.Steered) error {
		_, err := r.look(ctx, i)
		return err
	})
}

// look gives the nodes of a host as they are, or were a moment ago.
func (r *Roll) look(ctx context.Context, i int) ([]observe.Node, error) {
	on := &r.on[i]
	on.mutex.Lock()
	defer on.mutex.Unlock()
	if !on.at.IsZero() && time.Since(on.at) < fresh {
		return on.nodes, nil
	}
	nodes, err := r.hosts.All[i].Nodes(ctx)
	if err != nil {
		return nil, err
	}
	on.nodes, on.at = nodes, time.Now()
	return nodes, nil
}

// each is given each node that was on a host when somebody last looked there.
func (r *Roll) each(see func(h *apply.Steered, n *observe.Node) error) error {
	for i, h := range r.hosts.All {
		r.on[i].mutex.Lock()
		nodes := r.on[i].nodes
		r.on[i].mutex.Unlock()
		for k := range nodes {
			if err := see(h, &nodes[k]); err != nil {
				return err
			}
		}
	}
	return nil
}

// Runners gives the ways into those nodes that run and are of the release that the session is about.
func (r *Roll) Runners() (map[string]host.Runner, error) {
	all := map[string]host.Runner{}
	err := r.each(func(h *apply.Steered, n *observe.Node) (err error) {
		if n.State == observe.Running && r.session.Meant(n) {
			all[n.Name], err = r.into(h, n)
		}
		return err
	})
	return all, err
}

// Runner gives the way into one of them.
func (r *Roll) Runner(name string) (host.Runner, error) {
	all, err := r.Runners()
	if err != nil {
		return nil, err
	}
	if in, ok := all[name]; ok {
		return in, nil
	}
	return nil, NotRunning(name, r.session.Without...)
}

// Live gives the live instance of a node as it is now.
func (r *Roll) Live(ctx context.Context, name string) (*observe.Node, error) {
	for i := range r.hosts.All {
		nodes, err := r.look(ctx, i)
		if err != nil {
			return nil, err
		}
		for k := range nodes {
			if nodes[k].Name == name && !nodes[k].Staged {
				return &nodes[k], nil
			}
		}
	}
	return nil, NotRunning(name, r.session.Without...)
}

// Log opens what the roles of a node printed on its host when they were applied. If they printed nothing, that is fs.ErrNotExist.
func (r *Roll) Log(name string) (io.ReadCloser, error) {
	var there *apply.Steered
	_ = r.each(func(h *apply.Steered, n *observe.Node) error {
		if n.Name == name {
			there = h
		}
		return nil
	})
	if there != nil {
		return there.Log(name)
	}
	for _, h := range r.hosts.All { // it was on one of them, if it was at all
		if log, err := h.Log(name); !errors.Is(err, fs.ErrNotExist) {
			return log, err
		}
	}
	return nil, fs.ErrNotExist
}

// into gives the way into a node, which for those who are not root does not lead to where they would become that.
func (r *Roll) into(h *apply.Steered, n *observe.Node) (host.Runner, error) {
	if r.session.Barred(n) {
		return barred{name: n.Name}, nil
	}
	return h.Runner(&n.Node)
}

// All gives the ways into all nodes of a site that run.
func All(ctx context.Context, c *control.Session, s *site.Site) (map[string]host.Runner, error) {
	r, err := Call(ctx, c, s)
	if err != nil {
		return nil, err
	}
	return r.Runners()
}

// Into gives the way into a node that runs.
func Into(ctx context.Context, c *control.Session, s *site.Site, name string) (host.Runner, error) {
	r, err := Call(ctx, c, s)
	if err != nil {
		return nil, err
	}
	return r.Runner(name)
}

// NotRunning says that a node does not run, or is on one of the hosts that were left out.
func NotRunning(name string, without ...string) error {
	if len(without) > 0 {
		return problem.New(problem.Failed, "node %s does not run, unless it is on %s, which was left out", name, phrase.List(without, 12)).Try("leave out fewer hosts with --without")
	}
	return problem.New(problem.Failed, "node %s does not run", name).Try("orrery up %s", name)
}

// barred is the way into a node that is not for members.
type barred struct {
	host.Runner
	name string
}

func (b barred) Run(context.Context, host.Command) error {
	return problem.New(problem.Refused, "node %s is privileged, so whoever runs programs in it is root on this host; nothing was done", b.name).
		Try("ask whoever administers this host")
}
