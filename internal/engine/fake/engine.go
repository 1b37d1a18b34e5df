// Package fake is an engine in memory: nothing runs, but it keeps the whole contract of package
// engine. Failures, interruptions and delays can be ordered, so that tests see what a plan makes of
// them.
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

// Engine is an in-memory engine.Engine, engine.Keeper, engine.Remounter and engine.Freezer. It is
// strict: it refuses what would let two instances of a node be live at once, or have one exclusive
// volume.
type Engine struct {
	*Faults
	// Can is what the engine can do; what it cannot it refuses. New gives it all there is.
	Can observe.Capabilities
	// Command, if set, runs the commands that the node itself does not know (see shell.go); all
	// succeed without it.
	Command func(ctx context.Context, ref engine.Ref, c host.Command) error

	// Answers, if set, is asked when nobody listens at the port of a node.
	Answers serve

	// stands says why a node cannot be made or started where it is.
	stands func(method string, n *spec.Node) error

	disk    *Disk // has the files of nodes; nil: they are in memory
	mu      sync.Mutex
	nodes   map[engine.Ref]*node
	volumes volumeTrees
}

var (
	_ engine.Engine    = (*Engine)(nil)
	_ engine.Keeper    = (*Engine)(nil)
	_ engine.Remounter = (*Engine)(nil)
	_ engine.Freezer   = (*Engine)(nil)
)

// New makes an engine without nodes.
func New() *Engine {
	all := observe.Capabilities{Containers: true, LiveLimits: true, MoveNIC: true, Remount: true, Keep: true}
	return &Engine{Can: all, Faults: &Faults{}, nodes: map[engine.Ref]*node{}, volumes: volumeTrees{},
		stands: func(string, *spec.Node) error { return nil }}
}

// node is a node in memory; the engine's lock guards it.
type node struct {
	spec      spec.Node // Config is as applied, not as specified
	state     observe.State
	mark      engine.Mark
	drift     []observe.Drift // as a look into the node would find it
	files     tree            // the private layer
	former    *node
	listeners map[string]serve
	commands  []host.Command
	stop      context.CancelFunc // ends what runs in the node
	life      context.Context
}

func newNode(n *spec.Node) *node {
	return &node{spec: copyOf(n), state: observe.Broken, files: tree{}}
}

// copyOf keeps what the engine knows apart from what callers hold. What is to be applied has not been applied.
func copyOf(n *spec.Node) spec.Node {
	c := *n
	c.NICs, c.Mounts, c.Config = slices.Clone(n.NICs), slices.Clone(n.Mounts), spec.Config{}
	return c
}

// Capabilities says what the engine can do beyond the methods of engine.Engine.
func (e *Engine) Capabilities() observe.Capabilities { return e.Can }

// List returns the nodes of a site by name, and instances of one node by their ids: twice the same.
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

// Mended ends drift of a node.
func (e *Engine) Mended(ref engine.Ref, all ...observe.Drift) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if n, ok := e.nodes[ref]; ok {
		n.drift = slices.DeleteFunc(slices.Clone(n.drift), func(d observe.Drift) bool { return slices.Contains(all, d) })
	}
}

// Drift lets something of a running node drift, as List tells from then on.
func (e *Engine) Drift(ref engine.Ref, all ...observe.Drift) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if n, ok := e.nodes[ref]; ok {
		n.drift = append(n.drift, all...)
	}
}

// Create makes a node, stopped.
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
		return problem.New(problem.Surprise, "node %s is there already", n.Name)
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

// Change makes a node as specified in all but its layers and what was applied to it.
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
		return problem.New(problem.Surprise, "node %s is %s: only a stopped node can be reshaped", n.Name, existing.state)
	}
	if existing.running() {
		if err := alone(e.nodes, n); err != nil {
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

// sameShape reports whether a running node can become as specified: links and limits if the engine
// can change these.
func sameShape(can observe.Capabilities, old, next *spec.Node) bool {
	if !can.MoveNIC && !slices.Equal(old.NICs, next.NICs) || !can.LiveLimits &&
		spec.Digest(old.Limits) != spec.Digest(next.Limits) {
		return false
	}
	return old.Privileged == next.Privileged && slices.Equal(old.Syscalls, next.Syscalls) &&
		old.MachineID == next.MachineID &&
		(can.PlugNIC || slices.Equal(spec.Linked(old), spec.Linked(next))) && slices.Equal(old.Mounts, next.Mounts)
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
	return e.turn(ctx, "Start", ref, func(n *node) error {
		if err := alone(e.nodes, &n.spec); err != nil {
			return err
		}
		if n.life == nil {
			n.boot()
		}
		n.state = observe.Running
		return nil
	})
}

// Stop shuts a node down, by force if the time for it is over: before it begins, or during a Delay.
func (e *Engine) Stop(ctx context.Context, ref engine.Ref) error {
	if errors.Is(ctx.Err(), context.DeadlineExceeded) { // faults strike it, and no Delay holds it up
		moment, cancel := context.WithTimeout(context.WithoutCancel(ctx), 100*time.Millisecond)
		defer cancel()
		ctx = moment
	}
	halt := func(n *node) error {
		n.halt()
		n.state = observe.Stopped
		return nil
	}
	err := e.turn(ctx, "Stop", ref, halt)
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

// Freeze lets a running node stand still.
func (e *Engine) Freeze(ctx context.Context, ref engine.Ref) error {
	return e.turn(ctx, "Freeze", ref, func(n *node) error {
		if !n.running() {
			return engine.NotRunning(ref)
		}
		n.state = observe.Frozen
		return nil
	})
}

// Thaw lets a frozen node go on.
func (e *Engine) Thaw(ctx context.Context, ref engine.Ref) error {
	return e.turn(ctx, "Thaw", ref, func(n *node) error {
		if n.running() {
			n.state = observe.Running
		}
		return nil
	})
}

// turn brings a whole node into another state; interrupted half way, it leaves the node in the former one.
func (e *Engine) turn(ctx context.Context, method string, ref engine.Ref, do func(*node) error) error {
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
		return problem.New(problem.Surprise, "node %s is half made", ref.Name)
	case halfway != nil:
		return halfway
	}
	return do(n)
}

// Destroy removes a node, whatever its state.
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

// Mark records how far a node has been configured and proven.
func (e *Engine) Mark(ctx context.Context, ref engine.Ref, m engine.Mark) error {
	return e.turn(ctx, "Mark", ref, func(n *node) error {
		// else it may be active, or not, and nobody knows
		settled := m.Active && m.Configured && (!n.mark.Active || !n.mark.Configured)
		if settled && n.running() && !wholly(&n.spec) {
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
	return nil, problem.New(problem.Surprise, "node %s (id %d) of site %s is not there", ref.Name, ref.ID, ref.Site)
}
