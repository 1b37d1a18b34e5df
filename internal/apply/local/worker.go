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
	"orrery/internal/engine"
	"orrery/internal/engine/nodedir"
	"orrery/internal/host"
	"orrery/internal/host/numa"
	"orrery/internal/host/pci"
	"orrery/internal/host/sriov"
	"orrery/internal/network"
	"orrery/internal/observe"
	"orrery/internal/plan"
	"orrery/internal/plan/kernel"
	"orrery/internal/problem"
	"orrery/internal/snapshot"
	"orrery/internal/tree"
)

// A Host does steps on this machine. Everything needed for a step comes with it. The worker knows
// only the site's key, and keeps nothing in memory between steps that undoing them needs.
type Host struct {
	apply.Host
	*SiteState // shared by all parts of the host

	names     *names
	lifecycle *lifecycle
	moves     *nodeMoves
}

// The parts of the host, by subject.
type (
	runHost struct {
		*SiteState
		names    *names
		life     *lifecycle
		roles    *roles
		releases *releaseHost
		moves    *nodeMoves
	}
	stateHost struct {
		*SiteState
		names    *names
		volumes  volumeHost
		releases *releaseHost
		moves    *nodeMoves
	}
	nodeHost  struct{ *SiteState }
	layerHost struct {
		*SiteState
		layerStore
	}
	volumeHost struct {
		*SiteState
		mirrorVolumes
	}
	snapshotHost struct{ *SiteState }
	backupHost   struct{ *SiteState }
	twinHost     struct {
		*SiteState
		life *lifecycle
	}
	secretHost   struct{ *SiteState }
	transferHost struct {
		*SiteState
		moves *nodeMoves
	}
)

// NewHost returns a worker for a place.
func NewHost(at SiteState) *Host {
	p := &at
	w := &Host{SiteState: p, names: &names{SiteState: p}, moves: &nodeMoves{SiteState: p}}
	w.lifecycle = &lifecycle{SiteState: p, names: w.names}
	releases := &releaseHost{SiteState: p}
	volumes := volumeHost{p, newMirrorVolumes(p.Dirs, p.Key)}
	w.Host = apply.Host{
		Runs:      runHost{p, w.names, w.lifecycle, &roles{p, w.names, w.lifecycle}, releases, w.moves},
		State:     stateHost{p, w.names, volumes, releases, w.moves},
		Nodes:     nodeHost{p},
		Releases:  releases,
		Layers:    layerHost{p, newLayerStore(p.Dirs, nodeHost{p}.ofAllSites)},
		Volumes:   volumes,
		Snapshots: snapshotHost{p},
		Backups:   backupHost{p},
		Twins:     twinHost{p, w.lifecycle},
		Secrets:   secretHost{p},
		Transfers: transferHost{p, w.moves},
		Near:      p,
	}
	return w
}

// ofAllSites returns the nodes of all sites, or an error unless the host was opened without a site.
func (h nodeHost) ofAllSites(ctx context.Context) ([]observe.Node, error) {
	if h.Key != "" {
		return nil, fmt.Errorf("resources used by sites other than %s are unknown", h.Key)
	}
	return h.List(ctx)
}

// Observe returns what exists of the site on this machine. It tests an engine only if the site has
// nodes of it or it is in wanted. It also tries those features of the kernel that are in wanted.
func (h stateHost) Observe(ctx context.Context, wanted []string) (seen observe.Host, err error) {
	seen = observe.Host{Name: h.Name, Cpus: runtime.NumCPU(), Online: host.OnlineCPUs(), Memory: host.TotalMemory()}
	if err = h.Backends.Claims.Elsewhere(h.Key); err != nil {
		return seen, err
	}
	if seen.Nodes, err = (nodeHost{h.SiteState}).List(ctx); err != nil {
		return seen, err
	}
	if seen.Networks, err = h.Backends.Networks.Observe(h.Key); err != nil {
		return seen, fmt.Errorf("networks of this host: %w", err)
	}
	if seen.Addresses, seen.Around, err = h.Backends.Networks.Around(h.Key); err != nil {
		return seen, err
	}
	if seen.Layers, err = h.Backends.Layers.Layers(); err != nil {
		return seen, err
	}
	if seen.Volumes, err = h.Backends.Volumes.List(h.Key); err != nil {
		return seen, err
	}
	if seen.Secrets, err = (secretHost{h.SiteState}).kept().Generations(); err != nil {
		return seen, err
	}
	names, _ := os.ReadFile(h.Dirs.Names(h.Key))
	seen.Names, seen.HostNames = string(names), h.hostNames()
	seen.Settings = h.Backends.Kernel.Settings(settingNames())
	seen.Engines = map[string]observe.Capabilities{}
	for name, e := range h.Engines {
		of := func(n observe.Node) bool { return n.Engine == name }
		if slices.Contains(wanted, name) || slices.ContainsFunc(seen.Nodes, of) {
			seen.Engines[name] = probedCapabilities(ctx, e)
		} else {
			seen.Engines[name] = e.Capabilities()
		}
	}
	seen.Lacks = h.lacks(wanted)
	if seen.Functions, err = pci.Local.Functions(); err != nil {
		return seen, fmt.Errorf("the PCI bus: %w", err)
	}
	if seen.Cards, err = sriov.Local.Cards(); err != nil {
		return seen, fmt.Errorf("network cards with virtual functions: %w", err)
	}
	if seen.Drained, err = h.Cordoned(ctx); err != nil {
		return seen, err
	}
	if seen.Origin, err = h.owner(); err != nil {
		return seen, err
	}
	if b, err := host.ReadJSON[apply.UnattendedPlan](apply.UnattendedPath(h.Dirs, h.Key, apply.TriggerBoot)); err == nil {
		// a plan that cannot be read will be written again by the control host
		seen.Boot = b.Digest()
	}
	seen.Disk = h.disk(ctx)
	seen.Numa, seen.Hugepages = numa.Nodes(numa.Sys), numa.Hugepages(numa.Sys)
	if err := h.moves.observe(&seen); err != nil {
		return seen, err
	}
	if seen.Restoring, err = (backupHost{h.SiteState}).Restoring(ctx); err != nil {
		// It is unknown how far the restore has come. This must not prevent observing the site or
		// taking it down.
		seen.Restoring = &observe.RestoreProgress{Staged: true, Going: true}
	}
	seen.Releases, err = h.releases.Read(ctx)
	return seen, err
}

// probedCapabilities returns the capabilities of an engine after testing it.
func probedCapabilities(ctx context.Context, e engine.Engine) observe.Capabilities {
	can := engine.ProbedCapabilities(ctx, e)
	if of, ok := e.(engine.MemoryPoolProvider); ok {
		can.Pool = of.Pool(ctx)
	}
	return can
}

// List returns the nodes of all engines by name. The order stays the same if nothing has changed.
func (h nodeHost) List(ctx context.Context) (all []observe.Node, err error) {
	for _, name := range slices.Sorted(maps.Keys(h.Engines)) {
		e := h.Engines[name]
		nodes, wrong := e.List(ctx, h.Key)
		recordAccel(ctx, e, nodes)
		all, err = append(all, nodes...), errors.Join(err, wrong)
	}
	slices.SortStableFunc(all, func(a, b observe.Node) int { return strings.Compare(a.Name, b.Name) })
	return all, errors.Join(err, h.Backends.Traffic.Observe(all))
}

// listBrief returns the same nodes without the details that need a closer look.
func (h nodeHost) listBrief(ctx context.Context) ([]observe.Node, error) {
	see, can := engine.StateReaderOf(h.Engines)
	if !can {
		return h.List(ctx)
	}
	return nodedir.ObserveHeads(h.Dirs, h.Key, see)
}

// recordAccel records how the virtual machines of an engine are accelerated.
func recordAccel(ctx context.Context, e engine.Engine, nodes []observe.Node) {
	runs := func(n observe.Node) bool { return n.Runs() && n.Accel == "" } // else the engine has recorded it
	if !slices.ContainsFunc(nodes, runs) {
		return
	}
	accel := engine.ProbedCapabilities(ctx, e).Accel
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

// Sweep stops and removes what killed runs left behind. Only the holder of the lock may call it.
func (h runHost) Sweep(ctx context.Context) error {
	for _, e := range h.Engines {
		if s, ok := e.(engine.Sweeper); ok {
			if err := s.Sweep(ctx, h.Key); err != nil {
				return err
			}
		}
	}
	err := runOf(h.Dirs, h.Key).end()
	err = errors.Join(err, h.join())
	err = errors.Join(err, h.moves.sweep())
	err = errors.Join(err, h.Backends.Traffic.Sweep())
	err = errors.Join(err, h.Backends.Volumes.Sweep(h.Key))
	err = errors.Join(err, snapshot.Sweep(h.Dirs, h.Key))
	err = errors.Join(err, backupHost{h.SiteState}.sweepRestore())
	return errors.Join(err, h.Backends.Layers.Sweep())
}

// Do does one step.
func (h runHost) Do(ctx context.Context, s *plan.Step, say func(string)) error {
	if s.Kind == plan.MoveLinks {
		if wait := time.Until(s.At); wait > 0 { // hosts never agree on a moment that is far away
			if err := host.Sleep(ctx, min(wait, time.Second)); err != nil {
				return err
			}
		}
		return h.life.move(ctx, s.Moves)
	}
	switch s.Kind {
	case plan.HandOverNode, plan.ReceiveNode, plan.CleanUpNode, plan.ReclaimNode, plan.DiscardNode:
		return h.moves.do(ctx, s)
	}
	if s.ForNode() {
		return h.doNode(ctx, s, say)
	}
	switch s.Kind {
	case plan.PrepareHost:
		return h.Backends.Kernel.Prepare(ctx, s.Settings)
	case plan.RestoreHost:
		return h.restore(ctx)
	case plan.MakeNetwork:
		return h.makeNetwork(ctx, *s.Network)
	case plan.RemoveNetwork:
		return h.Backends.Networks.Remove(ctx, *s.Network)
	case plan.WriteNames:
		return h.names.write(ctx, s.Names, s.Tell)
	case plan.RestoreNames:
		return h.names.restore(ctx)
	case plan.ForgetNames:
		return h.names.forget(ctx)
	case plan.BuildLayer:
		return h.build(ctx, s.Layer, say)
	case plan.RemoveVolume:
		return h.Backends.Volumes.Erase(s.Path)
	case plan.CommitSwitch:
		return h.releases.Write(ctx, *s.Releases) // the time of a trial starts now, after all other steps
	case plan.ForgetRelease:
		return h.forgetRelease(s.Release)
	}
	return unknown(s)
}

func (h runHost) doNode(ctx context.Context, s *plan.Step, say func(string)) error {
	n := s.Node
	if n == nil {
		n = s.Old
	}
	e, err := h.engine(n)
	if err != nil {
		return err
	}
	if err := prepareSpare(s, runOf(h.Dirs, h.Key).dir); err != nil {
		return err
	}
	switch s.Kind {
	case plan.CreateNode:
		return h.life.create(ctx, e, n)
	case plan.ReplaceNode:
		return h.life.replace(ctx, e, n)
	case plan.RestoreNode:
		return h.life.restore(ctx, e, n)
	case plan.ReshapeNode:
		if err := h.Backends.Networks.AddAntiSpoof(ctx, network.Ports(n)); err != nil {
			return err
		}
		return e.Change(ctx, n)
	case plan.LimitNode:
		if err := e.Change(ctx, n); err != nil {
			return err
		}
		return h.Backends.Traffic.Set(n)
	case plan.StartNode:
		return h.life.start(ctx, e, s)
	case plan.RenewNode:
		return h.life.liveUpgrade(ctx, e, n, say)
	case plan.StopNode:
		if s.Peer != "" {
			if err := h.moves.dir(n.ID).Move().SetResume(); err != nil {
				return err
			}
		}
		return stop(ctx, e, engine.RefOf(n), cmp.Or(s.Timeout, plan.DefaultStopTimeout), say)
	case plan.KillNode:
		return stop(ctx, e, engine.RefOf(n), 0, say)
	case plan.DestroyNode:
		return e.Destroy(ctx, engine.RefOf(n))
	case plan.RevertNode:
		return h.roles.revert(ctx, e, n)
	}
	if s.Duties == nil {
		return problem.New(problem.Surprise, "node %s: the step lacks the actions of its roles", n.Name).
			Try("plan again")
	}
	job := roleRun{h.roles, e, n, s.Duties, say}
	return job.recordFailure(ctx, s.Kind, doRoles(ctx, job, s))
}

// doRoles does a step that concerns the roles of a running node.
func doRoles(ctx context.Context, job roleRun, s *plan.Step) error {
	switch s.Kind {
	case plan.ConfigureNode:
		return job.configure(ctx, s.Tell)
	case plan.RepairNode:
		return job.repair(ctx, s.Drift)
	case plan.CheckNode:
		return job.check(ctx)
	case plan.RetireNode:
		return job.deactivate(ctx)
	case plan.TakeVolumes:
		return job.useVolumes(ctx)
	case plan.ReturnVolumes:
		return job.useVolumeCopies(ctx)
	case plan.ActivateNode:
		return job.activate(ctx)
	}
	return unknown(s)
}

func unknown(s *plan.Step) error {
	return fmt.Errorf("a step of kind %q cannot be done on this host", s.Kind)
}

// restore restores the host's own settings when no site has a node on it any more.
func (h runHost) restore(ctx context.Context) error {
	if err := h.Backends.Volumes.Release(); err != nil {
		return err
	}
	for _, e := range h.Engines {
		nodes, err := e.List(ctx, "")
		if err != nil || len(nodes) > 0 {
			return err
		}
	}
	if err := h.Backends.Networks.Sweep(ctx); err != nil {
		return err
	}
	if networks, err := h.Backends.Networks.Observe(""); err != nil || len(networks) > 0 {
		return err
	}
	return h.Backends.Kernel.Restore(ctx)
}

// forgetRelease removes what is kept of a release: the copy of the site directory from which it was
// staged, and copies of volumes.
func (h runHost) forgetRelease(number int) error {
	err := h.Backends.Volumes.DropCopies(h.Key, number)
	return errors.Join(err, tree.RemoveAll(h.Dirs.Release(h.Key, number)))
}

// DiscardUndo removes what was kept for undoing, after a run has succeeded or was undone.
func (h runHost) DiscardUndo(ctx context.Context, done []*plan.Step) error {
	for _, s := range done {
		if s.Kind == plan.CommitSwitch {
			if err := h.releases.dropCopies(); err != nil {
				return err
			}
		}
		if s.Kind != plan.ReplaceNode {
			continue
		}
		if keeper, ok := h.Engines[s.Node.Engine].(engine.Replacer); ok {
			if err := keeper.Settle(ctx, engine.RefOf(s.Node)); err != nil {
				return err
			}
		}
	}
	if err := h.unguard(ctx, done); err != nil {
		return err
	}
	return runOf(h.Dirs, h.Key).end()
}

// SkippedFiles returns which files are missing in the copies of volumes that were made, and why.
func (h runHost) SkippedFiles(context.Context) ([]string, error) {
	h.life.leaving.Lock()
	defer h.life.leaving.Unlock()
	return slices.Clone(h.life.left), nil
}

// LastDuration returns how long the last build of a layer of the same image and roles took, or 0 if
// none is on record.
func (h runHost) LastDuration(_ context.Context, s *plan.Step) (time.Duration, error) {
	if s.Kind != plan.BuildLayer || h.Backends.Layers == nil {
		return 0, nil
	}
	return h.Backends.Layers.Took(s.Layer.Title), nil
}
