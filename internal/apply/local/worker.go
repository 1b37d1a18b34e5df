package local

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"runtime"
	"slices"
	"strings"
	"time"

	"orrery/internal/apply"
	"orrery/internal/apply/local/spare"
	"orrery/internal/apply/mirrors"
	"orrery/internal/engine"
	"orrery/internal/engine/nodedir"
	"orrery/internal/host"
	"orrery/internal/host/numa"
	"orrery/internal/host/pci"
	"orrery/internal/network"
	"orrery/internal/observe"
	"orrery/internal/plan"
	"orrery/internal/plan/kernel"
	"orrery/internal/problem"
	"orrery/internal/snapshot"
	"orrery/internal/stock"
	"orrery/internal/tree"
)

// A Worker does steps on this machine. All that a step takes comes with it: nothing is known here of the site but its key, and nothing is kept in
// memory between steps that undoing them needs.
type Worker struct {
	Place
	names    names
	life     life
	roles    roles
	releases releases
	moves    moves
	stock.Room
	mirrors.Cellar
}

var _ apply.Host = (*Worker)(nil)

// NewWorker gives a worker in a place.
func NewWorker(at Place) *Worker {
	w := &Worker{Place: at}
	w.names.Place, w.life.Place, w.roles.Place, w.releases.Place = &w.Place, &w.Place, &w.Place, &w.Place
	w.moves.Place = &w.Place
	w.Room = stock.Of(at.Dirs, w.ofAllSites)
	w.Cellar = mirrors.Of(at.Dirs, at.Key, func() mirrors.Timers { return w.Ground.Timers })
	w.life.names, w.roles.names, w.roles.life = &w.names, &w.names, &w.life
	return w
}

// ofAllSites gives the nodes that are there, if the worker is about those of all sites.
func (w *Worker) ofAllSites(ctx context.Context) ([]observe.Node, error) {
	if w.Key != "" {
		return nil, fmt.Errorf("what other sites than %s use is not known", w.Key)
	}
	return w.Nodes(ctx)
}

// Observe looks at what is there of the site. An engine is put on trial only if the site has nodes of it, or is wanted to.
func (w *Worker) Observe(ctx context.Context, wanted []string) (seen observe.Host, err error) {
	seen = observe.Host{Name: w.Name, Cpus: runtime.NumCPU(), Online: host.Online(), Memory: host.TotalMemory()}
	if err = w.Ground.Claims.Elsewhere(w.Key); err != nil {
		return seen, err
	}
	if seen.Nodes, err = w.Nodes(ctx); err != nil {
		return seen, err
	}
	if seen.Networks, err = w.Ground.Networks.Observe(w.Key); err != nil {
		return seen, fmt.Errorf("networks of this host: %w", err)
	}
	if seen.Addresses, seen.Around, err = w.Ground.Networks.Around(w.Key); err != nil {
		return seen, err
	}
	if seen.Layers, err = w.Ground.Layers.Layers(); err != nil {
		return seen, err
	}
	if seen.Volumes, err = w.Ground.Volumes.List(w.Key); err != nil {
		return seen, err
	}
	names, _ := os.ReadFile(w.Dirs.Names(w.Key))
	seen.Names = string(names)
	seen.Settings = w.Ground.Kernel.Settings(settingNames())
	seen.Engines = map[string]observe.Capabilities{}
	for name, e := range w.Engines {
		of := func(n observe.Node) bool { return n.Engine == name }
		if slices.Contains(wanted, name) || slices.ContainsFunc(seen.Nodes, of) {
			seen.Engines[name] = tried(ctx, e)
		} else {
			seen.Engines[name] = e.Capabilities()
		}
	}
	if seen.Functions, err = pci.Here.Functions(); err != nil {
		return seen, fmt.Errorf("the PCI bus: %w", err)
	}
	if seen.Drained, err = w.Drained(ctx); err != nil {
		return seen, err
	}
	if seen.Origin, err = w.origin(); err != nil {
		return seen, err
	}
	if b, err := host.ReadJSON[apply.Boot](apply.BootPath(w.Dirs, w.Key)); err == nil { // else whoever steers writes it anew
		seen.Boot = b.Digest()
	}
	seen.Disk = w.disk()
	seen.Numa, seen.Hugepages = numa.Nodes(numa.Sys), numa.Hugepages(numa.Sys)
	if err := w.moves.observe(&seen); err != nil {
		return seen, err
	}
	if seen.Restoring, err = w.RestorePart(ctx); err != nil { // nobody can tell how far it has come; it must not keep anybody from looking, or from taking the site down
		seen.Restoring = &observe.Restoring{Staged: true, Going: true}
	}
	seen.Releases, err = w.ReadReleases(ctx)
	return seen, err
}

// tried gives what an engine can do that is asked for.
func tried(ctx context.Context, e engine.Engine) observe.Capabilities {
	can := engine.Tried(ctx, e)
	if of, has := e.(engine.Pooled); has {
		can.Pool = of.Pool(ctx)
	}
	return can
}

// Nodes gives the nodes that are there, whatever runs them, by name: twice the same, if nothing has changed.
func (p *Place) Nodes(ctx context.Context) (all []observe.Node, err error) {
	return p.nodesOf(func(e engine.Engine) ([]observe.Node, error) {
		nodes, err := e.List(ctx, p.Key)
		tellAccel(ctx, e, nodes)
		return nodes, err
	})
}

// glance returns the same nodes without what only a closer look tells.
func (p *Place) glance(ctx context.Context) ([]observe.Node, error) {
	see, can := engine.Glances(p.Engines)
	if !can {
		return p.Nodes(ctx)
	}
	return nodedir.Glance(p.Dirs, p.Key, see)
}

// nodesOf returns the nodes of all engines by name.
func (p *Place) nodesOf(list func(engine.Engine) ([]observe.Node, error)) (all []observe.Node, err error) {
	for _, name := range slices.Sorted(maps.Keys(p.Engines)) {
		nodes, wrong := list(p.Engines[name])
		all, err = append(all, nodes...), errors.Join(err, wrong)
	}
	slices.SortStableFunc(all, func(a, b observe.Node) int { return strings.Compare(a.Name, b.Name) })
	return all, err
}

// tellAccel takes down what runs the virtual machines among the nodes of an engine.
func tellAccel(ctx context.Context, e engine.Engine, nodes []observe.Node) {
	runs := func(n observe.Node) bool { return n.Runs() && n.Accel == "" } // else the engine has taken it down itself
	if !slices.ContainsFunc(nodes, runs) {
		return
	}
	accel := engine.Tried(ctx, e).Accel
	for i := range nodes {
		if runs(nodes[i]) {
			nodes[i].Accel = accel
		}
	}
}

func settingNames() (names []string) {
	for name := range kernel.Settings {
		names = append(names, name)
	}
	return names
}

// Sweep ends and removes what runs that were killed left behind. Only the holder of the lock may call it.
func (w *Worker) Sweep(ctx context.Context) error {
	for _, e := range w.Engines {
		if s, ok := e.(engine.Sweeper); ok {
			if err := s.Sweep(ctx, w.Key); err != nil {
				return err
			}
		}
	}
	err := runOf(w.Dirs, w.Key).end()
	err = errors.Join(err, w.moves.sweep())
	err = errors.Join(err, w.Ground.Volumes.Sweep(w.Key))
	err = errors.Join(err, snapshot.Sweep(w.Dirs, w.Key))
	err = errors.Join(err, w.sweepRestore())
	return errors.Join(err, w.Ground.Layers.Sweep())
}

// Do does one step.
func (w *Worker) Do(ctx context.Context, s *plan.Step, say func(string)) error {
	if s.Kind == plan.MoveLinks {
		if wait := time.Until(s.At); wait > 0 { // nobody has agreed on what is far
			if err := host.Pause(ctx, min(wait, time.Second)); err != nil {
				return err
			}
		}
		return w.life.move(ctx, s.Moves)
	}
	switch s.Kind {
	case plan.GiveNode, plan.ReceiveNode, plan.LeaveNode, plan.ReclaimNode, plan.DropNode:
		return w.moves.do(ctx, s)
	}
	if s.ForNode() {
		return w.doNode(ctx, s, say)
	}
	switch s.Kind {
	case plan.PrepareHost:
		return w.Ground.Kernel.Prepare(ctx, s.Settings)
	case plan.RestoreHost:
		return w.restore(ctx)
	case plan.MakeNetwork:
		return w.makeNetwork(ctx, *s.Network)
	case plan.RemoveNetwork:
		return w.Ground.Networks.Remove(ctx, *s.Network)
	case plan.WriteNames:
		return w.names.write(ctx, s.Names, s.Tell)
	case plan.RestoreNames:
		return w.names.restore()
	case plan.ForgetNames:
		return w.names.forget()
	case plan.BuildLayer:
		return w.build(ctx, s.Layer, say)
	case plan.RemoveVolume:
		return w.Ground.Volumes.Erase(s.Path)
	case plan.CommitSwitch:
		return w.releases.commit(*s.Releases)
	case plan.ForgetRelease:
		return w.forgetRelease(s.Release)
	}
	return unknown(s)
}

func (w *Worker) doNode(ctx context.Context, s *plan.Step, say func(string)) error {
	n := s.Node
	if n == nil {
		n = s.Was
	}
	e, err := w.engine(n)
	if err != nil {
		return err
	}
	if err := spare.Prepare(s, runOf(w.Dirs, w.Key).dir); err != nil {
		return err
	}
	switch s.Kind {
	case plan.CreateNode:
		return w.life.create(ctx, e, n)
	case plan.ReplaceNode:
		return w.life.replace(ctx, e, n)
	case plan.RestoreNode:
		return w.life.restore(ctx, e, n)
	case plan.ReshapeNode:
		if err := w.Ground.Networks.Guard(ctx, network.Ports(n)); err != nil {
			return err
		}
		return e.Change(ctx, n)
	case plan.LimitNode:
		return e.Change(ctx, n)
	case plan.StartNode:
		return w.life.start(ctx, e, s)
	case plan.RenewNode:
		return w.life.renew(ctx, e, n, say)
	case plan.StopNode:
		if s.Peer != "" {
			if err := w.moves.dir(n.ID).Resume(); err != nil {
				return err
			}
		}
		return stop(ctx, e, engine.RefOf(n), cmp.Or(s.Timeout, plan.DefaultStopTimeout), say)
	case plan.KillNode:
		return stop(ctx, e, engine.RefOf(n), 0, say)
	case plan.DestroyNode:
		return e.Destroy(ctx, engine.RefOf(n))
	case plan.RevertNode:
		return w.roles.revert(ctx, e, n)
	}
	if s.Duties == nil {
		return problem.New(problem.Surprise, "node %s: what its roles do did not come with the step", n.Name).Try("plan again")
	}
	job := work{&w.roles, e, n, s.Duties, say}
	switch s.Kind {
	case plan.ConfigureNode:
		return job.configure(ctx, s.Tell)
	case plan.MendNode:
		return job.mend(ctx, s.Drift)
	case plan.CheckNode:
		return job.check(ctx)
	case plan.RetireNode:
		return job.retire(ctx)
	case plan.TakeVolumes:
		return job.take(ctx)
	case plan.ReturnVolumes:
		return job.giveBack(ctx)
	case plan.ActivateNode:
		return job.activate(ctx)
	}
	return unknown(s)
}

func unknown(s *plan.Step) error {
	return fmt.Errorf("a step of kind %q cannot be done on this host", s.Kind)
}

// restore gives the host its own settings back when no site has a node on it any more.
func (w *Worker) restore(ctx context.Context) error {
	if err := w.Ground.Volumes.Release(); err != nil {
		return err
	}
	for _, e := range w.Engines {
		nodes, err := e.List(ctx, "")
		if err != nil || len(nodes) > 0 {
			return err
		}
	}
	if err := w.Ground.Networks.Sweep(ctx); err != nil {
		return err
	}
	if networks, err := w.Ground.Networks.Observe(""); err != nil || len(networks) > 0 {
		return err
	}
	return w.Ground.Kernel.Restore(ctx)
}

// forgetRelease removes what is kept of a release: the site as it was when it was staged, and copies of volumes.
func (w *Worker) forgetRelease(number int) error {
	err := w.Ground.Volumes.DropCopies(w.Key, number)
	return errors.Join(err, tree.RemoveAll(w.Dirs.Release(w.Key, number)))
}

// Settle removes what was kept for undoing, once a run has succeeded or been undone.
func (w *Worker) Settle(ctx context.Context, done []*plan.Step) error {
	for _, s := range done {
		if s.Kind == plan.CommitSwitch {
			if err := w.releases.dropCopies(); err != nil {
				return err
			}
		}
		if s.Kind != plan.ReplaceNode {
			continue
		}
		if keeper, ok := w.Engines[s.Node.Engine].(engine.Keeper); ok {
			if err := keeper.Settle(ctx, engine.RefOf(s.Node)); err != nil {
				return err
			}
		}
	}
	if err := w.unguard(ctx, done); err != nil {
		return err
	}
	return runOf(w.Dirs, w.Key).end()
}

// Left gives what is not in the copies of volumes that were made, and why.
func (w *Worker) Left(context.Context) ([]string, error) {
	w.life.leaving.Lock()
	defer w.life.leaving.Unlock()
	return slices.Clone(w.life.left), nil
}

// Took returns how long the last build of a layer of the same image and roles took, or 0 if none is on record.
func (w *Worker) Took(_ context.Context, s *plan.Step) (time.Duration, error) {
	if s.Kind != plan.BuildLayer || w.Ground.Layers == nil {
		return 0, nil
	}
	return w.Ground.Layers.Took(s.Layer.Title), nil
}
