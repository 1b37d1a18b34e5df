package local

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"orrery/internal/engine"
	"orrery/internal/engine/nodedir"
	"orrery/internal/host"
	"orrery/internal/image"
	"orrery/internal/network"
	"orrery/internal/plan"
	"orrery/internal/problem"
	"orrery/internal/role"
	"orrery/internal/site/spec"
	"orrery/internal/volume"
)

// lifecycle creates, starts, stops and moves nodes.
type lifecycle struct {
	*SiteState
	names *names
	// held while nodes are frozen for a copy: they must not be resumed while another copy needs
	// them frozen
	standing sync.Mutex
	leaving  sync.Mutex // held while left is read or written
	left     []string   // what is missing in the copies of volumes that were made, and why
}

// stop shuts a node down, and kills it if it has not ended within the timeout. It then tells the
// user, because data that the node had not written is lost. A timeout of zero means that the user
// asked to kill it.
func stop(ctx context.Context, e engine.Engine, ref engine.Ref, timeout time.Duration, say func(string)) error {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	err := e.Stop(ctx, ref)
	if err == nil && timeout > 0 && ctx.Err() != nil {
		say(fmt.Sprintf("did not shut down within %v and was killed", timeout))
	}
	return err
}

// create creates a node and the SSH host key by which clients recognise it.
func (l *lifecycle) create(ctx context.Context, e engine.Engine, n *spec.Node) error {
	if _, err := l.names.hostKey(n.Name); err != nil {
		return err
	}
	if err := e.Create(ctx, n); err != nil {
		return err
	}
	return backupHost{l.SiteState}.fillRestored(ctx, e, n)
}

// replace recreates a node with other layers.
func (l *lifecycle) replace(ctx context.Context, e engine.Engine, n *spec.Node) error {
	keeper, err := keeperOf(e, n)
	if err != nil {
		return err
	}
	return keeper.Replace(ctx, n)
}

// keeperOf returns the engine of a node that is replaced. No plan replaces nodes of an engine that
// keeps nothing.
func keeperOf(e engine.Engine, n *spec.Node) (engine.Replacer, error) {
	if keeper, ok := e.(engine.Replacer); ok {
		return keeper, nil
	}
	return nil, problem.New(problem.Surprise, "node %s: the engine %s cannot keep a replaced node", n.Name,
		n.Engine).Try("plan again")
}

// restore restores a replaced node, unless it was never replaced.
func (l *lifecycle) restore(ctx context.Context, e engine.Engine, as *spec.Node) error {
	record, err := l.recorded(as)
	if err == nil && record.Base == as.Base && record.Layer == as.Layer {
		return nil
	}
	keeper, err := keeperOf(e, as)
	if err != nil {
		return err
	}
	return keeper.Restore(ctx, engine.RefOf(as))
}

// start provides the files that a node needs at boot, then boots it. A node that is no longer
// declared already has them.
func (l *lifecycle) start(ctx context.Context, e engine.Engine, s *plan.Step) error {
	n, run := s.Node, runOf(l.Dirs, l.Key)
	if err := l.provide(ctx, n); err != nil {
		return err
	}
	if err := (backupHost{l.SiteState}).fillRestored(ctx, e, n); err != nil {
		// the run that created the node may have been killed before it filled it
		return err
	}
	if s.Duties != nil {
		if err := l.names.provideEtc(ctx, n, s.Duties, s.Tell); err != nil {
			return err
		}
	}
	ref := engine.RefOf(n)
	record, err := l.recorded(n)
	if err != nil {
		return err
	}
	active := record.Active
	if active && n.Staged { // it was live, and was stopped before it could be retired
		if err := l.disableServices(ctx, e, n, s.Duties); err != nil {
			return err
		}
		active = false
	}
	if record.Proven != "" || record.Active != active { // the former health check was of what ran before
		if err := e.SetProgress(ctx, ref, engine.Progress{Configured: record.Configured, Config: record.Config,
			Active: active}); err != nil {
			return err
		}
	}
	injected := !record.Configured && l.inject(ctx, e, n, s.Duties) == nil
	if err := run.note(n.ID, func(p *progress) { p.Injected, p.Booting = injected, true }); err != nil {
		return err
	}
	if err := l.Backends.Networks.AddAntiSpoof(ctx, network.Ports(&record.Node)); err != nil {
		return err
	}
	if err := e.Start(ctx, ref); err != nil {
		return err
	}
	return nodedir.Of(l.Dirs, l.Key, n.ID).Move().Finish()
}

// liveUpgrade makes a node continue in the current programs of the host, and reports for how long it was
// frozen.
func (l *lifecycle) liveUpgrade(ctx context.Context, e engine.Engine, n *spec.Node, say func(string)) error {
	renewer, ok := e.(engine.LiveUpgrader)
	if !ok {
		return problem.New(problem.Surprise, "node %s: the engine %s cannot move a running node to new programs", n.Name,
			n.Engine).Try("plan again")
	}
	how, err := renewer.LiveUpgrade(ctx, engine.RefOf(n))
	if err == nil {
		say(fmt.Sprintf("was frozen for %d ms; %.1f MB moved in %.1f s", how.Downtime.Milliseconds(),
			float64(how.Bytes)/1e6, how.Took.Seconds()))
	}
	return err
}

// disableServices makes a stopped node boot without the services that only a live node runs.
func (l *lifecycle) disableServices(ctx context.Context, e engine.Engine, n *spec.Node,
	duties *spec.RoleActions) error {
	if duties == nil {
		return problem.New(problem.Surprise, "node %s is no longer declared, and would run services of a live node",
			n.Name).Try("plan again")
	}
	var units []string
	for i := range duties.Roles {
		units = append(units, duties.Roles[i].Active...)
	}
	if len(units) == 0 {
		return nil
	}
	f, ok := e.(engine.Injector)
	if !ok {
		return problem.New(problem.Unable, "engine %s cannot boot node %s without %s, which only a live node runs",
			n.Engine, n.Name, strings.Join(units, ", ")).
			Try("orrery stage --release %d recreates it", n.Release)
	}
	return f.Disable(ctx, engine.RefOf(n), units...)
}

// inject writes the files of a node's roles before it boots, which is faster than doing so in the
// running node. If it returns an error, the files are written once the node runs, and problems with
// them are reported then. It skips nodes with volumes, because a file may belong on a volume.
func (l *lifecycle) inject(ctx context.Context, e engine.Engine, n *spec.Node, duties *spec.RoleActions) error {
	injector, ok := e.(engine.Injector)
	if !ok || duties == nil || len(n.Mounts) > 0 {
		return errors.ErrUnsupported
	}
	var files []host.File
	for i := range duties.Roles {
		files = append(files, role.RenderedFiles(&duties.Roles[i])...)
	}
	if len(files) == 0 {
		return nil
	}
	return injector.Inject(ctx, engine.RefOf(n), files...)
}

// move moves the links of nodes to other networks in one batch, and then records the new links.
func (l *lifecycle) move(ctx context.Context, moves []plan.Move) error {
	var links []network.Move
	var live []string // network namespaces of the nodes that go live
	for _, m := range moves {
		if s, ok := l.Engines[m.New.Engine].(engine.NetNamespacer); ok && !m.New.Staged {
			if at := s.NetNamespace(engine.RefOf(m.New)); at != "" {
				live = append(live, at)
			}
		}
		for _, nic := range m.New.NICs {
			if m.New.LinkKind(nic).Bridged {
				links = append(links, network.Move{Link: nic.HostIfName, Bridge: nic.Bridge})
			}
		}
	}
	if err := l.Backends.Networks.MoveLinks(ctx, links, live...); err != nil {
		return err
	}
	var now, later []*spec.Node
	for _, m := range moves {
		if m.New.Staged {
			later = append(later, m.New)
		} else {
			now = append(now, m.New) // clients wait for these nodes
		}
	}
	err := l.updateLinks(ctx, now)
	return errors.Join(err, l.updateLinks(ctx, later))
}

// updateLinks tells the engines where the links of nodes are now.
func (l *lifecycle) updateLinks(ctx context.Context, nodes []*spec.Node) error {
	errs := make([]error, len(nodes))
	var all sync.WaitGroup
	for i, n := range nodes {
		all.Go(func() {
			e, err := l.engine(n)
			if err == nil {
				err = e.Change(ctx, n)
			}
			errs[i] = err
		})
	}
	all.Wait()
	return errors.Join(errs...)
}

// provide makes the volumes of a node that is about to start, or copies of them for a node in
// quarantine.
func (l *lifecycle) provide(ctx context.Context, n *spec.Node) error {
	root := volume.NodeRoot{
		Owner:      func(owner string) (int, int, error) { return image.LookupAccount(l.trees(n), owner) },
		WithLayers: func(path string, do func(dir string) error) error { return l.withLayers(n, path, do) },
	}
	for _, m := range n.Mounts {
		var err error
		switch m.Copy {
		case "":
			err = l.Backends.Volumes.Provide(ctx, n, m, root)
		case spec.NoCopy:
		default:
			err = l.provideCopy(ctx, n, m, root)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// provideCopy copies a volume for the quarantine while all nodes that write to it are frozen.
func (l *lifecycle) provideCopy(ctx context.Context, n *spec.Node, m spec.Mount, root volume.NodeRoot) error {
	made, err := l.Backends.Volumes.ProvideCopy(ctx, n, m, root,
		l.freezeWriters(volume.Path(l.Dirs, n.Site, n.Name, volume.LiveMount(m))))
	l.leaving.Lock()
	defer l.leaving.Unlock()
	for _, what := range made.Skipped {
		l.left = append(l.left, fmt.Sprintf("volume %s of %s: %s", m.Volume, n.Name, what))
	}
	return err
}

// freezeWriters returns a function that freezes all nodes of the site that write to the directory of a
// volume while it is copied. If a running writer cannot be frozen, or it is unknown which nodes
// run, nothing is copied.
func (l *lifecycle) freezeWriters(path string) volume.FreezeFunc {
	return func(ctx context.Context, do func(context.Context) error) error {
		l.standing.Lock()
		defer l.standing.Unlock()
		running, err := engine.Running(ctx, l.Engines, l.Key)
		if err != nil {
			return err
		}
		writers := volume.Writers(l.Dirs, l.Key, running, path)
		if len(writers) == 0 {
			return do(ctx)
		}
		letGo := func() {}
		if l.Guard != nil {
			if letGo, err = l.Guard(writers...); err != nil {
				return err
			}
		}
		_, err = engine.WhileFrozen(ctx, l.Engines, writers, do)
		if err == nil {
			letGo() // if Still failed, the guard resumes the nodes that are still frozen as soon as this process ends
		}
		return err
	}
}
