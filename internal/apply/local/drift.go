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

// DetectDrift inspects the nodes for which wants has a desired state, and stores in each what has
// drifted since its roles were applied.
func (h nodeHost) DetectDrift(ctx context.Context, nodes []observe.Node, wants []apply.DesiredNode) error {
	var round drift.Scan
	found := make([]atomic.Pointer[[]observe.Drift], len(nodes))
	for i, want := range wants {
		if want.Node == nil {
			continue
		}
		l, err := h.newDriftQuery(&nodes[i], want)
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
				Kind: observe.DriftNode, How: observe.Unresponsive, Node: nodes[i].Name, Subject: nodes[i].Name,
				Want: "answering", Found: h.Secrets.Redact("silent (" + shortError(err) + ")"),
			})
		}
		if want := wants[i]; want.Node != nil && nodes[i].Config.Health != "" {
			nodes[i].Sick, nodes[i].ProbedAt = healthDrift(&nodes[i], began), began
			// The directory is missing if the node is being destroyed.
			if err := h.storeProbe(&nodes[i], want.Duties); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return err
			}
		}
	}
	return nil
}

// storeProbe stores whether a probe found a node healthy.
func (h nodeHost) storeProbe(n *observe.Node, duties *spec.RoleActions) error {
	r := nodedir.Of(h.Dirs, n.Site, n.ID).Results()
	if n.Sick != nil || !isSettled(n, duties) { // its checks did not run
		return r.StoreSickness(n.Sick)
	}
	return r.StoreHealth(n.ProbedAt, n.ProvenAt)
}

// isSettled reports whether the roles of a node have been applied completely, so that their services
// run. A node that will be activated gets its files, volumes and services then.
func isSettled(n *observe.Node, duties *spec.RoleActions) bool {
	return n.Configured && (n.Active || !role.NeedsActivation(duties))
}

// healthDrift returns the health drift of a node, or nil if it has none.
func healthDrift(n *observe.Node, at time.Time) *observe.HealthFailure {
	i := slices.IndexFunc(n.Drift, observe.Drift.Unhealthy)
	if i < 0 {
		return nil
	}
	return &observe.HealthFailure{At: at, Found: n.Drift[i].String(), Proven: n.ProvenAt}
}

// shortError shortens an error, which may contain text of the node, to a part of a line.
func shortError(err error) string { return problem.Truncate(sanitize.Line(err.Error()), 200) }

// A driftQuery is what to look for in one node.
type driftQuery struct {
	*SiteState
	node   *observe.Node
	duties *spec.RoleActions
	engine engine.Engine

	units    []drift.Unit
	rendered []drift.RoleFile
	laid     []drift.ManagedFile // files of roles in the layers
	free     drift.IgnoreList    // what nodes may change
	settled  bool                // its roles have been applied completely, and their services run
	answered drift.IgnoreList    // files that belong to roles, which are not checked as programs of the layers
}

func (h nodeHost) newDriftQuery(n *observe.Node, want apply.DesiredNode) (*driftQuery, error) {
	e, err := h.engine(&n.Node)
	if err != nil {
		return nil, err
	}
	l := &driftQuery{SiteState: h.SiteState, node: n, duties: want.Duties, engine: e}
	l.settled = isSettled(n, want.Duties)
	for i := range want.Duties.Roles {
		l.role(&want.Duties.Roles[i], want.Node)
	}
	return l, nil
}

// role adds those parts of a role that were applied in their declared form.
func (l *driftQuery) role(r *spec.RoleAction, wanted *spec.Node) {
	node := l.node
	for i := range r.Files {
		f := &r.Files[i]
		l.answered = append(l.answered, f.Path)
		if !f.Rendered() && node.Layer == wanted.Layer {
			l.laid = append(l.laid, drift.ManagedFile{Path: f.Path, Role: r.Name})
		}
	}
	l.free = append(l.free, r.Changes...)
	if !l.settled {
		return // the rest will be applied anyway
	}
	for _, f := range role.RenderedFiles(r) {
		if part := r.Name + ": file " + f.Path; node.Config.Parts[part] == wanted.Config.Parts[part] {
			l.rendered = append(l.rendered, drift.RoleFile{File: f, Role: r.Name})
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

func (l *driftQuery) allowance() time.Duration {
	return askTimeout + readTimeout + role.MaxProbeTime(l.duties)
}

// all returns everything that has drifted. The error, which may come with results, describes what
// could not be checked.
func (l *driftQuery) all(ctx context.Context) ([]observe.Drift, error) {
	all, err := l.files(ctx)
	in, sv := l.engine.Runner(engine.RefOf(&l.node.Node)), distro.OrDefault(l.node.Distribution).Services
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
	var sick *role.HealthError
	if errors.As(wrong, &sick) {
		all = append(all, observe.Drift{
			Kind: observe.DriftHealth, How: observe.Failing, Node: l.node.Name, Subject: sick.Check, Role: sick.Role,
			Want: "passed", Found: l.Secrets.Redact("failing (" + shortError(sick.Err) + ")"),
		})
	}
	return all, err
}

// files checks those of the node's files that the host can read without asking the node, if the
// engine supports it.
func (l *driftQuery) files(ctx context.Context) ([]observe.Drift, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, readTimeout,
		fmt.Errorf("its changed files could not be read within %s", readTimeout))
	defer cancel()
	var all []observe.Drift
	keep := func(some []observe.Drift, err error) error {
		all = append(all, some...)
		return err
	}
	err := l.withNodeFS(l.engine, &l.node.Node, func(in nodeFS) error {
		err := keep(drift.Programs(ctx, l.node.Name, in.private, in.layers, slices.Concat(l.free, l.answered)))
		if err == nil {
			err = keep(drift.LayerFiles(ctx, l.node.Name, in.root, in.first, in.layers, l.laid, l.free))
		}
		if err == nil {
			err = keep(drift.Files(l.node.Name, in.root, in.first, l.rendered, l.free))
		}
		return err
	})
	return all, err
}

// A nodeFS is the host's view of a running node's files.
type nodeFS struct {
	root    *tree.Root // as the node sees it
	first   int        // the user id of the node's root on the host
	private *tree.Root // the node's private layer
	layers  drift.LayerStack
}

// withNodeFS calls do with the files of a running node, as seen from the host. It does nothing if the
// engine does not support this.
func (p *SiteState) withNodeFS(e engine.Engine, n *spec.Node, do func(nodeFS) error) error {
	viewer, views := e.(engine.RootOpener)
	layered, stacks := e.(engine.Layered)
	if !views || !stacks || n.VM.Disk != "" || n.Imported() { // only the guest can read what it has written to its disk
		return nil
	}
	ref := engine.RefOf(n)
	in := nodeFS{}
	if mapper, maps := e.(engine.Idmapper); maps {
		var err error
		if in.first, err = mapper.Idmap(ref); err != nil {
			return err
		}
	}
	var err error
	if in.root, err = viewer.OpenRoot(ref); err != nil {
		return err
	}
	defer in.root.Close()
	if in.private, err = tree.Open(layered.Private(ref)); err != nil {
		return err
	}
	defer in.private.Close()
	if in.layers, err = drift.OpenLayers(p.trees(n)); err != nil {
		return err
	}
	defer in.layers.Close()
	return do(in)
}
