package local

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"sync/atomic"
	"time"

	"orrery/internal/apply"
	"orrery/internal/drift"
	"orrery/internal/engine"
	"orrery/internal/engine/nodedir"
	"orrery/internal/observe"
	"orrery/internal/problem"
	"orrery/internal/role"
	"orrery/internal/site/distro"
	"orrery/internal/site/spec"
	"orrery/internal/text/sanitize"
	"orrery/internal/tree"
)

// How long looking into one node may take, without its health checks: askTimeout to ask its
// systemd, and readTimeout to read what it has changed.
const (
	askTimeout  = 10 * time.Second
	readTimeout = 2 * time.Minute
)

// DetectDrift looks into the nodes for which wants gives a desired state, and stores in each what
// has drifted since its roles were applied.
func (h nodeHost) DetectDrift(ctx context.Context, nodes []observe.Node, wants []apply.Want) error {
	var round drift.Round
	found := make([]atomic.Pointer[[]observe.Drift], len(nodes))
	for i, want := range wants {
		if want.Node == nil {
			continue
		}
		l, err := h.lookInto(&nodes[i], want)
		if err != nil {
			return err
		}
		round.Add(i, l.allowance(), func(ctx context.Context) error {
			all, err := l.all(ctx)
			found[i].Store(&all)
			return err
		})
	}
	began := time.Now().UTC()
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
				Want: "answering", Found: h.Secrets.Redact("silent (" + brief(err) + ")"),
			})
		}
		if want := wants[i]; want.Node != nil && nodes[i].Config.Health != "" {
			nodes[i].Sick = sickness(&nodes[i], began)
			// The directory is missing if the node is being destroyed.
			err := nodedir.Of(h.Dirs, nodes[i].Site, nodes[i].ID).KeepSick(nodes[i].Sick)
			if err != nil && !errors.Is(err, fs.ErrNotExist) {
				return err
			}
		}
	}
	return nil
}

// sickness returns the health drift of a node, or nil if it has none.
func sickness(n *observe.Node, at time.Time) *observe.Sickness {
	i := slices.IndexFunc(n.Drift, observe.Drift.Sick)
	if i < 0 {
		return nil
	}
	return &observe.Sickness{At: at, Found: n.Drift[i].String(), Proven: n.ProvenAt}
}

// brief shortens an error, which may contain text of the node, to a part of a line.
func brief(err error) string { return problem.Short(sanitize.Line(err.Error()), 200) }

// A look is what to look for in one node.
type look struct {
	*Place
	node   *observe.Node
	duties *spec.Duties
	engine engine.Engine

	units    []drift.Unit
	rendered []drift.Rendered
	laid     []drift.Owned // files of roles in the layers
	free     drift.Free    // what nodes may change
	settled  bool          // its roles have been applied completely, and their services run
	answered drift.Free    // files that belong to roles, which are not checked as programs of the layers
}

func (h nodeHost) lookInto(n *observe.Node, want apply.Want) (*look, error) {
	e, err := h.engine(&n.Node)
	if err != nil {
		return nil, err
	}
	l := &look{Place: h.Place, node: n, duties: want.Duties, engine: e}
	// A node that will be activated gets its files, volumes and services then.
	l.settled = n.Configured && (n.Active || !role.Holders(want.Duties))
	for i := range want.Duties.Roles {
		l.role(&want.Duties.Roles[i], want.Node)
	}
	return l, nil
}

// role adds those parts of a role that were applied in their declared form.
func (l *look) role(r *spec.Duty, wanted *spec.Node) {
	node := l.node
	for i := range r.Files {
		f := &r.Files[i]
		l.answered = append(l.answered, f.Path)
		if !f.Rendered() && node.Layer == wanted.Layer {
			l.laid = append(l.laid, drift.Owned{Path: f.Path, Role: r.Name})
		}
	}
	l.free = append(l.free, r.Changes...)
	if !l.settled {
		return // the rest will be applied anyway
	}
	for _, f := range role.Files(r) {
		if part := r.Name + ": file " + f.Path; node.Config.Parts[part] == wanted.Config.Parts[part] {
			l.rendered = append(l.rendered, drift.Rendered{File: f, Role: r.Name})
		}
	}
	for _, name := range r.Services {
		if slices.Contains(node.Config.Services, name) {
			l.units = append(l.units, drift.Unit{Name: name, Role: r.Name})
		}
	}
	for _, name := range r.Active {
		if _, applied := node.Config.Active[r.Name+": service "+name]; applied {
			l.units = append(l.units, drift.Unit{Name: name, Role: r.Name})
		}
	}
}

func (l *look) allowance() time.Duration {
	return askTimeout + readTimeout + role.Allowance(l.duties)
}

// all returns everything that has drifted. The error, which may come with results, describes what
// could not be checked.
func (l *look) all(ctx context.Context) ([]observe.Drift, error) {
	all, err := l.files(ctx)
	in, sv := l.engine.Runner(engine.RefOf(&l.node.Node)), distro.Or(l.node.Distribution).Services
	asked, cancel := context.WithTimeoutCause(ctx, askTimeout,
		fmt.Errorf("its %s does not answer within %s", sv.Name, askTimeout))
	defer cancel()
	services, wrong := drift.Services(asked, l.node.Name, in, sv, l.units)
	all = append(all, services...)
	if !l.settled {
		return all, errors.Join(err, wrong)
	}
	err = errors.Join(err, wrong)
	wrong = role.Probe(ctx, in, l.duties)
	var sick *role.Sickness
	if errors.As(wrong, &sick) {
		all = append(all, observe.Drift{
			Kind: observe.DriftHealth, How: observe.Failing, Node: l.node.Name, Subject: sick.Check, Role: sick.Role,
			Want: "passed", Found: l.Secrets.Redact("failing (" + brief(sick.Err) + ")"),
		})
	}
	return all, err
}

// files checks those of the node's files that the host can read without asking the node, if the
// engine supports it.
func (l *look) files(ctx context.Context) ([]observe.Drift, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, readTimeout,
		fmt.Errorf("what it has changed cannot be read within %s", readTimeout))
	defer cancel()
	var all []observe.Drift
	keep := func(some []observe.Drift, err error) error {
		all = append(all, some...)
		return err
	}
	err := l.inside(l.engine, &l.node.Node, func(in inner) error {
		err := keep(drift.Programs(ctx, l.node.Name, in.private, in.layers, slices.Concat(l.free, l.answered)))
		if err == nil {
			err = keep(drift.Laid(ctx, l.node.Name, in.root, in.first, in.layers, l.laid, l.free))
		}
		if err == nil {
			err = keep(drift.Files(l.node.Name, in.root, in.first, l.rendered, l.free))
		}
		return err
	})
	return all, err
}

// An inner is the host's view of a running node's files.
type inner struct {
	root    *tree.Root // as the node sees it
	first   int        // the user id of the node's root on the host
	private *tree.Root // the node's private layer
	layers  drift.Stack
}

// inside calls do with the files of a running node, as seen from the host. It does nothing if the
// engine does not support this.
func (p *Place) inside(e engine.Engine, n *spec.Node, do func(inner) error) error {
	viewer, views := e.(engine.Viewer)
	layered, stacks := e.(engine.Layered)
	if !views || !stacks || n.VM.Disk != "" || n.Imported() { // only the guest can read what it has written to its disk
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
	if in.layers, err = drift.OpenStack(p.trees(n)); err != nil {
		return err
	}
	defer in.layers.Close()
	return do(in)
}
