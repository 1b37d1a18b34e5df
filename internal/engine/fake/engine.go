// Package fake is an engine in memory. Nothing runs, but it implements the whole contract of
// package engine. Tests can inject failures, interruptions and delays to see how plans handle them.
package fake

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"orrery/internal/engine"
	"orrery/internal/host"
	"orrery/internal/observe"
	"orrery/internal/problem"
	"orrery/internal/site/spec"
)

// Engine is an in-memory engine.Engine, engine.Replacer, engine.Remounter and engine.Freezer. It is
// strict: it refuses operations after which two instances of a node would be live, or would share
// an exclusive volume.
type Engine struct {
	*Faults
	// Can is what the engine can do. It refuses everything else. New sets all abilities.
	Can observe.Capabilities
	// Command, if set, runs the commands that the fake node does not implement (see shell.go). If
	// it is not set, those commands succeed.
	Command func(ctx context.Context, ref engine.Ref, c host.Command) error

	// Answers, if set, serves connections to ports on which nothing listens.
	Answers serve

	// stands returns an error if a node cannot be made or started on this host.
	stands func(method string, n *spec.Node) error

	disk    *Disk // stores the files of nodes, or nil if they are in memory
	mu      sync.Mutex
	nodes   map[engine.Ref]*node
	volumes volumeTrees
}

var (
	_ engine.Engine    = (*Engine)(nil)
	_ engine.Replacer  = (*Engine)(nil)
	_ engine.Remounter = (*Engine)(nil)
	_ engine.Freezer   = (*Engine)(nil)
)

// New returns an engine without nodes.
func New() *Engine {
	all := observe.Capabilities{Containers: true, LiveLimits: true, MoveNIC: true, Remount: true, Keep: true}
	return &Engine{Can: all, Faults: &Faults{}, nodes: map[engine.Ref]*node{}, volumes: volumeTrees{},
		stands: func(string, *spec.Node) error { return nil }}
}

// node is a node in memory, guarded by the engine's lock.
type node struct {
	spec      spec.Node // Config is as applied, not as specified
	state     observe.State
	mark      engine.Progress
	drift     []observe.Drift // as observed in the node
	files     tree            // the private layer
	former    *node
	listeners map[string]serve
	commands  []host.Command
	stop      context.CancelFunc // ends commands that run in the node
	life      context.Context
}

func newNode(n *spec.Node) *node {
	return &node{spec: copyOf(n), state: observe.Broken, files: tree{}}
}

// copyOf copies a spec, so that the engine and its callers share no slices. It clears Config,
// because nothing has been applied.
func copyOf(n *spec.Node) spec.Node {
	c := *n
	c.NICs, c.Mounts, c.Config = slices.Clone(n.NICs), slices.Clone(n.Mounts), spec.Config{}
	return c
}

// Capabilities returns what the engine can do beyond the methods of engine.Engine.
func (e *Engine) Capabilities() observe.Capabilities { return e.Can }

// List returns the nodes of a site, sorted by name, and by id for instances of one node.
func (e *Engine) List(ctx context.Context, site string) ([]observe.Node, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	var all []observe.Node
	for ref, n := range e.nodes {
		if site == "" || ref.Site == site {
			o := observe.Node{Node: copyOf(&n.spec), State: n.state, Configured: n.mark.Configured, Proven: n.mark.Proven,
				ProvenAt: n.mark.ProvenAt, Active: n.mark.Active}
			o.Config, o.Drift = n.mark.Config, slices.Clone(n.drift)
			all = append(all, o)
		}
	}
	slices.SortFunc(all, func(a, b observe.Node) int {
		return cmp.Or(strings.Compare(a.Name, b.Name), cmp.Compare(a.ID, b.ID))
	})
	return all, nil
}

// RemoveDrift removes drift from a node.
func (e *Engine) RemoveDrift(ref engine.Ref, all ...observe.Drift) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if n, ok := e.nodes[ref]; ok {
		n.drift = slices.DeleteFunc(slices.Clone(n.drift), func(d observe.Drift) bool { return slices.Contains(all, d) })
	}
}

// AddDrift adds drift to a node, which List then reports.
func (e *Engine) AddDrift(ref engine.Ref, all ...observe.Drift) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if n, ok := e.nodes[ref]; ok {
		n.drift = append(n.drift, all...)
	}
}

// Create makes a stopped node.
func (e *Engine) Create(ctx context.Context, n *spec.Node) error {
	if err := e.stands("Create", n); err != nil {
		return err
	}
	what := e.begin(ctx, "Create", n.Name)
	if what.err != nil {
		return what.err
	}
	ref := engine.RefOf(n)
	e.mu.Lock()
	if _, ok := e.nodes[ref]; ok {
		e.mu.Unlock()
		return problem.New(problem.Surprise, "node %s already exists", n.Name)
	}
	made := newNode(n)
	e.nodes[ref] = made
	e.mu.Unlock()
	if err := what.halfway(ctx); err != nil {
		return err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.volumes.make(n)
	made.state = observe.Stopped
	return nil
}

// Change updates everything but the layers and the applied configuration of a node to n.
func (e *Engine) Change(ctx context.Context, n *spec.Node) error {
	what := e.begin(ctx, "Change", n.Name)
	if what.err != nil {
		return what.err
	}
	halfway := what.halfway(ctx)
	e.mu.Lock()
	defer e.mu.Unlock()
	existing, err := e.find(engine.RefOf(n))
	if err != nil {
		return err
	}
	if existing.state != observe.Stopped && !sameShape(e.Can, &existing.spec, n) {
		return problem.New(problem.Surprise, "node %s is %s, and only a stopped node can be updated", n.Name, existing.state)
	}
	if existing.running() {
		if err := checkExclusive(e.nodes, n); err != nil {
			return err
		}
	}
	if halfway != nil {
		existing.spec.NICs, existing.spec.MachineID = slices.Clone(n.NICs), n.MachineID
		return halfway
	}
	changed := copyOf(n)
	changed.Base, changed.Kernel, changed.Layer = existing.spec.Base, existing.spec.Kernel, existing.spec.Layer
	changed.Below, changed.Parts = existing.spec.Below, existing.spec.Parts
	existing.spec = changed
	e.volumes.make(n)
	return nil
}

// sameShape reports whether a running node can be changed as specified. Links and limits can differ
// only if the engine can change them.
func sameShape(can observe.Capabilities, old, next *spec.Node) bool {
	if !can.MoveNIC && !slices.Equal(spec.WithoutTraffic(old.NICs), spec.WithoutTraffic(next.NICs)) || !can.LiveLimits &&
		spec.Digest(old.Limits) != spec.Digest(next.Limits) {
		return false
	}
	return old.Privileged == next.Privileged && slices.Equal(old.Syscalls, next.Syscalls) &&
		slices.Equal(old.Devices, next.Devices) &&
		old.MachineID == next.MachineID &&
		(can.PlugNIC || slices.Equal(spec.WithoutBridges(old), spec.WithoutBridges(next))) &&
		slices.Equal(old.Mounts, next.Mounts)
}

// Start boots a node.
func (e *Engine) Start(ctx context.Context, ref engine.Ref) error {
	e.mu.Lock()
	n, err := e.find(ref)
	if err != nil {
		e.mu.Unlock()
		return err
	}
	as := copyOf(&n.spec)
	e.mu.Unlock()
	if err := e.stands("Start", &as); err != nil {
		return err
	}
	return e.changeNode(ctx, "Start", ref, func(n *node) error {
		if err := checkExclusive(e.nodes, &n.spec); err != nil {
			return err
		}
		if n.life == nil {
			n.boot()
		}
		n.state = observe.Running
		return nil
	})
}

// Stop shuts a node down. It does so by force if the deadline has passed before it begins, or
// passes during a Delay.
func (e *Engine) Stop(ctx context.Context, ref engine.Ref) error {
	if errors.Is(ctx.Err(), context.DeadlineExceeded) { // faults apply to it, but no Delay does
		moment, cancel := context.WithTimeout(context.WithoutCancel(ctx), 100*time.Millisecond)
		defer cancel()
		ctx = moment
	}
	halt := func(n *node) error {
		n.halt()
		n.state = observe.Stopped
		return nil
	}
	err := e.changeNode(ctx, "Stop", ref, halt)
	if !errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	n, err := e.find(ref)
	if err != nil {
		return err
	}
	return halt(n)
}

// Freeze freezes a running node.
func (e *Engine) Freeze(ctx context.Context, ref engine.Ref) error {
	return e.changeNode(ctx, "Freeze", ref, func(n *node) error {
		if !n.running() {
			return engine.NotRunning(ref)
		}
		n.state = observe.Frozen
		return nil
	})
}

// Thaw lets a frozen node continue.
func (e *Engine) Thaw(ctx context.Context, ref engine.Ref) error {
	return e.changeNode(ctx, "Thaw", ref, func(n *node) error {
		if n.running() {
			n.state = observe.Running
		}
		return nil
	})
}

// changeNode changes the state of a complete node. If it is interrupted half way, the node keeps its
// former state.
func (e *Engine) changeNode(ctx context.Context, method string, ref engine.Ref, do func(*node) error) error {
	what := e.begin(ctx, method, ref.Name)
	if what.err != nil {
		return what.err
	}
	halfway := what.halfway(ctx)
	e.mu.Lock()
	defer e.mu.Unlock()
	n, err := e.find(ref)
	switch {
	case err != nil:
		return err
	case n.state == observe.Broken:
		return problem.New(problem.Surprise, "node %s is incomplete", ref.Name)
	case halfway != nil:
		return halfway
	}
	return do(n)
}

// Destroy removes a node in any state.
func (e *Engine) Destroy(ctx context.Context, ref engine.Ref) error {
	what := e.begin(ctx, "Destroy", ref.Name)
	if what.err != nil {
		return what.err
	}
	e.mu.Lock()
	if n, ok := e.nodes[ref]; ok {
		n.halt()
		n.state = observe.Broken
	}
	e.mu.Unlock()
	if err := what.halfway(ctx); err != nil {
		return err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	delete(e.nodes, ref)
	return nil
}

// SetProgress records how far a node has been configured, and which health checks it has passed.
func (e *Engine) SetProgress(ctx context.Context, ref engine.Ref, m engine.Progress) error {
	return e.changeNode(ctx, "SetProgress", ref, func(n *node) error {
		// If the previous mark was not settled, the node may be active or not.
		settled := m.Active && m.Configured && (!n.mark.Active || !n.mark.Configured)
		if settled && n.running() && !allLive(&n.spec) {
			return problem.New(problem.Surprise, "node %s (id %d) is activated, and not all of its links are live", ref.Name,
				ref.ID)
		}
		m.Config.Parts = maps.Clone(m.Config.Parts)
		n.mark = m
		return nil
	})
}

func (e *Engine) find(ref engine.Ref) (*node, error) {
	if n, ok := e.nodes[ref]; ok {
		return n, nil
	}
	return nil, problem.New(problem.Surprise, "node %s (id %d) of site %s does not exist", ref.Name, ref.ID, ref.Site)
}
