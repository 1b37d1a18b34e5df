package local

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"orrery/internal/drift"
	"orrery/internal/engine"
	"orrery/internal/observe"
	"orrery/internal/plan"
	"orrery/internal/problem"
	"orrery/internal/role"
	"orrery/internal/site"
	"orrery/internal/site/render"
	"orrery/internal/site/spec"
	"orrery/internal/tree"
	"orrery/internal/visible"
)

// How long a look into one node may take besides its health checks: to ask its systemd, and to read what it has changed.
const (
	askPatience  = 10 * time.Second
	readPatience = 2 * time.Minute
)

// Probe looks into the live nodes that run (of these names; nil: all), and notes with each what has drifted since its roles were applied.
// What has not been applied yet is no drift: that is for the plan.
func (h *Host) Probe(ctx context.Context, nodes []observe.Node, names map[string]bool) error {
	var round drift.Round
	found := make([]atomic.Pointer[[]observe.Drift], len(nodes))
	makers := map[*site.Site]*spec.Maker{}
	for i := range nodes {
		n := &nodes[i]
		if n.State != observe.Running || n.Staged || names != nil && !names[n.Name] {
			continue
		}
		l, err := h.lookInto(n, makers)
		if errors.Is(err, errNoNode) {
			continue // it is on its way out
		}
		if err != nil {
			return err
		}
		round.Add(i, l.allowance(), func(ctx context.Context) error {
			all, err := l.all(ctx)
			found[i].Store(&all)
			return err
		})
	}
	wrong := round.Run(ctx)
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	for i := range nodes {
		if all := found[i].Load(); all != nil {
			nodes[i].Drift = *all
		}
		if err := wrong[i]; err != nil {
			nodes[i].Drift = append(nodes[i].Drift, observe.Drift{
				Kind: observe.DriftNode, How: observe.Silent, Node: nodes[i].Name, Subject: nodes[i].Name,
				Want: "answering", Found: h.Keys.Redact("silent (" + brief(err) + ")"),
			})
		}
	}
	return nil
}

// brief gives an error that may be in a node's own words as a part of a line.
func brief(err error) string { return problem.Short(visible.Line(err.Error()), 200) }

// A look is what is to be looked for in one node.
type look struct {
	host     *Host
	node     *observe.Node
	site     *site.Site
	declared *site.Node
	engine   engine.Engine

	units    []drift.Unit
	rendered []drift.Rendered
	laid     []drift.Owned // files of roles in the layers
	free     drift.Free    // what nodes may change
	settled  bool          // its roles have been applied in full, and are at work
	answered drift.Free    // what roles answer for, and is not looked at as a program of the layers
}

func (h *Host) lookInto(n *observe.Node, makers map[*site.Site]*spec.Maker) (*look, error) {
	s, declared, err := h.declared(&n.Node)
	if err != nil {
		return nil, err
	}
	if makers[s] == nil {
		makers[s] = spec.NewMaker(s)
	}
	wanted, err := makers[s].Node(declared)
	if err != nil {
		return nil, err
	}
	e, err := h.engine(&n.Node)
	if err != nil {
		return nil, err
	}
	l := &look{host: h, node: n, site: s, declared: declared, engine: e}
	// What is to be activated is given its files, volumes and services then.
	l.settled = n.Configured && (n.Active || !role.Holders(s, declared))
	for _, r := range s.RolesOf(declared) {
		if err := l.role(makers[s].View, r, wanted); err != nil {
			return nil, err
		}
	}
	return l, nil
}

// role adds what of a role has been applied as it is declared.
func (l *look) role(view *render.View, r *site.Role, wanted *spec.Node) error {
	has := l.node
	for i := range r.Files {
		f := &r.Files[i]
		l.answered = append(l.answered, f.Path)
		if !f.Rendered() && has.Layer == wanted.Layer {
			l.laid = append(l.laid, drift.Owned{Path: f.Path, Role: r.Name})
		}
	}
	l.free = append(l.free, r.Changes...)
	if !l.settled {
		return nil // the rest is done anyway
	}
	files, err := role.Files(view, r, l.declared.Name)
	if err != nil {
		return err
	}
	for _, f := range files {
		if part := r.Name + ": file " + f.Path; has.Config.Parts[part] == wanted.Config.Parts[part] {
			l.rendered = append(l.rendered, drift.Rendered{File: f, Role: r.Name})
		}
	}
	for _, name := range r.Services {
		if slices.Contains(has.Config.Services, name) {
			l.units = append(l.units, drift.Unit{Name: name, Role: r.Name})
		}
	}
	for _, name := range r.Active {
		if _, applied := has.Config.Active[r.Name+": service "+name]; applied {
			l.units = append(l.units, drift.Unit{Name: name, Role: r.Name})
		}
	}
	return nil
}

func (l *look) allowance() time.Duration {
	return askPatience + readPatience + role.Allowance(l.site, l.declared)
}

// all gives all that has drifted. What cannot be found out is an error, beside what has been found.
func (l *look) all(ctx context.Context) ([]observe.Drift, error) {
	all, err := l.files(ctx)
	in := l.engine.Runner(engine.RefOf(&l.node.Node))
	asked, cancel := context.WithTimeoutCause(ctx, askPatience, fmt.Errorf("its systemd does not answer within %s", askPatience))
	defer cancel()
	services, wrong := drift.Services(asked, l.node.Name, in, l.units)
	all = append(all, services...)
	if !l.settled {
		return all, errors.Join(err, wrong)
	}
	err = errors.Join(err, wrong)
	wrong = role.Probe(ctx, in, render.New(l.site), l.site, l.declared)
	var sick *role.Sickness
	if errors.As(wrong, &sick) {
		all = append(all, observe.Drift{
			Kind: observe.DriftHealth, How: observe.Failing, Node: l.node.Name, Subject: sick.Check, Role: sick.Role,
			Want: "passed", Found: l.host.Keys.Redact("failing (" + brief(sick.Err) + ")"),
		})
	}
	return all, err
}

// files looks at what the host can see of the node's files without asking it, where the engine lets it.
func (l *look) files(ctx context.Context) ([]observe.Drift, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, readPatience, fmt.Errorf("what it has changed cannot be read within %s", readPatience))
	defer cancel()
	var all []observe.Drift
	err := l.host.inside(l.engine, &l.node.Node, func(in inner) error {
		some, err := drift.Programs(ctx, l.node.Name, in.private, in.layers, slices.Concat(l.free, l.answered))
		all = append(all, some...)
		if err != nil {
			return err
		}
		if some, err = drift.Laid(ctx, l.node.Name, in.root, in.first, in.layers, l.laid, l.free); err != nil {
			return err
		}
		all = append(all, some...)
		some, err = drift.Files(l.node.Name, in.root, in.first, l.rendered, l.free)
		all = append(all, some...)
		return err
	})
	return all, err
}

// An inner is what the host sees of a running node's files.
type inner struct {
	root    *tree.Root // as the node sees it
	first   int        // the id, on the host, of the node's root
	private *tree.Root // the node's private layer
	layers  drift.Stack
}

// inside lets somebody look at the files of a running node from the host. With an engine by which that cannot be done nothing is.
func (h *Host) inside(e engine.Engine, n *spec.Node, do func(inner) error) error {
	viewer, views := e.(engine.Viewer)
	layered, stacks := e.(engine.Layered)
	if !views || !stacks {
		return nil
	}
	ref := engine.RefOf(n)
	in := inner{}
	if mapper, maps := e.(engine.Idmapper); maps {
		var err error
		if in.first, err = mapper.Idmap(ref); err != nil {
			return err
		}
	}
	var err error
	if in.root, err = viewer.View(ref); err != nil {
		return err
	}
	defer in.root.Close()
	if in.private, err = tree.Open(layered.Private(ref)); err != nil {
		return err
	}
	defer in.private.Close()
	if in.layers, err = drift.OpenStack(h.trees(n)); err != nil {
		return err
	}
	defer in.layers.Close()
	return do(in)
}

// mend puts right what has drifted. Until that is done the node is on record as not configured, and what proved it healthy is forgotten: a run
// that is killed in between is made good by the next, whether that looks or not.
func (h *Host) mend(ctx context.Context, e engine.Engine, s *plan.Step, say func(string)) error {
	n := s.Node
	was, err := h.recorded(n)
	if err != nil {
		return err
	}
	ref := engine.RefOf(n)
	if err := e.Mark(ctx, ref, engine.Mark{Config: was.Config, Active: was.Active}); err != nil {
		return err
	}
	if err := h.putBack(ctx, e, n, s.Drift, say); err != nil {
		return problem.New(problem.Failed, "what the layers of node %s have cannot be put back", n.Name).Because(err).
			Try("see in the node what stands in its place; orrery down %s and orrery up make it anew", n.Name)
	}
	err = h.apply(ctx, e, n, say, func(j *role.Job, ctx context.Context) error { return j.Mend(ctx, s.Drift) })
	if err != nil {
		return err
	}
	return e.Mark(ctx, ref, engine.Mark{Configured: was.Configured, Config: was.Config, Active: was.Active})
}

// putBack gives a node what it has deleted or changed of its layers.
func (h *Host) putBack(ctx context.Context, e engine.Engine, n *spec.Node, all []observe.Drift, say func(string)) error {
	s, declared, err := h.declared(n)
	if err != nil {
		return err
	}
	rendered := map[string]bool{}
	for _, r := range s.RolesOf(declared) {
		for i := range r.Files {
			if r.Files[i].Rendered() {
				rendered[r.Files[i].Path] = true
			}
		}
	}
	all = slices.DeleteFunc(slices.Clone(all), func(d observe.Drift) bool {
		return d.Kind != observe.DriftProgram && (d.Kind != observe.DriftFile || rendered[d.Subject])
	})
	if len(all) == 0 {
		return nil
	}
	return h.inside(e, n, func(in inner) error {
		to, err := in.root.Alone() // whatever the node has mounted over it
		if err != nil {
			return err
		}
		defer to.Close()
		for _, d := range all {
			say(d.Subject + " from its layer")
			err = errors.Join(err, in.layers.Restore(ctx, to, in.first, d.Subject))
		}
		return err
	})
}
