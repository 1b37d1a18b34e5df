package snapshot

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"orrery/internal/engine"
	"orrery/internal/engine/nodedir"
	"orrery/internal/host"
	"orrery/internal/problem"
	"orrery/internal/volume"
)

// A Restore restores stopped nodes from a snapshot. The former state is kept until Settle, and
// Undo brings it back.
type Restore struct {
	Left []string // volumes that stay as they are, and why
	Lost []string // parts of the snapshot that could not be restored, and why

	from     *Snapshot
	dirs     host.Dirs
	engines  map[string]engine.Engine
	nodes    []Node
	volumes  []Volume
	created  []engine.Ref
	replaced []engine.Ref
	// the former marks of the nodes that were neither created nor replaced
	were  map[engine.Ref]engine.Progress
	pairs []*dirSwap
}

// Restore restores the chosen nodes of a snapshot, or all if chosen is nil, with their volumes. If
// it fails, the former state is back.
func (s *Snapshot) Restore(ctx context.Context, dirs host.Dirs, engines map[string]engine.Engine,
	chosen map[string]bool) (*Restore, error) {
	if err := s.CheckRestorable(dirs, chosen); err != nil {
		return nil, err
	}
	if err := Recover(dirs, s.Site); err != nil {
		return nil, err
	}
	r := &Restore{from: s, dirs: dirs, engines: engines, nodes: s.Chosen(chosen), were: map[engine.Ref]engine.Progress{}}
	err := r.chooseVolumes()
	for _, n := range r.nodes {
		if err == nil {
			err = r.prepareNode(ctx, n)
		}
	}
	for _, v := range r.volumes {
		if err == nil {
			err = r.prepare(ctx, s.VolumeDir(v), v.Path)
		}
	}
	if err == nil {
		err = r.swap(ctx)
	}
	if err != nil {
		return nil, errors.Join(err, r.Undo(context.WithoutCancel(ctx)))
	}
	return r, nil
}

// CheckRestorable returns an error if the restore of other nodes was interrupted, because these may be
// running by now.
func (s *Snapshot) CheckRestorable(dirs host.Dirs, chosen map[string]bool) error {
	id, nodes, err := Interrupted(dirs, s.Site)
	if err != nil || id == "" {
		return err
	}
	covered := !slices.ContainsFunc(nodes, func(name string) bool { return chosen != nil && !chosen[name] })
	if id == s.ID && covered {
		return nil
	}
	return interruptedProblem(dirs, s.Site, id, nodes)
}

// Chosen returns the chosen nodes of a snapshot, or all if chosen is nil.
func (s *Snapshot) Chosen(chosen map[string]bool) []Node {
	return slices.DeleteFunc(slices.Clone(s.Nodes), func(n Node) bool { return chosen != nil && !chosen[n.Record.Name] })
}

// chooseVolumes selects the volumes to restore. It leaves out those that other nodes use, too.
func (r *Restore) chooseVolumes() error {
	back := map[int]bool{}
	uses := map[string]bool{}
	for _, n := range r.nodes {
		back[n.Record.ID] = true
		for _, m := range n.Record.Mounts {
			uses[volume.Path(r.dirs, r.from.Site, n.Record.Name, m)] = true
		}
	}
	others := map[string]string{}
	found, err := nodedir.All(r.dirs, r.from.Site)
	for _, f := range found {
		for _, m := range f.Record.Mounts {
			if !back[f.Record.ID] {
				others[volume.Path(r.dirs, r.from.Site, f.Record.Name, m)] = f.Record.Name
			}
		}
	}
	for _, v := range r.from.Volumes {
		if other, shared := others[v.Path]; shared && uses[v.Path] {
			r.Left = append(r.Left, v.Name+": node "+other+" uses it, too, and is not restored")
		} else if uses[v.Path] {
			r.volumes = append(r.volumes, v)
		}
	}
	return err
}

// prepareNode puts the node on its layers of the snapshot, and stages its private layer of the
// snapshot beside the current one.
func (r *Restore) prepareNode(ctx context.Context, n Node) error {
	e, ok := r.engines[n.Record.Engine]
	layered, supported := e.(engine.Layered)
	if !ok || !supported || n.How == "" {
		return problem.New(problem.Unable, "the private layer of node %s is not in snapshot %s", n.Record.Name, r.from.ID)
	}
	ref := engine.RefOf(&n.Record.Node)
	now, err := nodedir.Of(r.dirs, ref.Site, ref.ID).Read()
	switch {
	case errors.Is(err, fs.ErrNotExist):
		r.created = append(r.created, ref)
		err = e.Create(ctx, &n.Record.Node)
	case err == nil && (now.Base != n.Record.Base || now.Layer != n.Record.Layer || now.VM.Disk != n.Record.VM.Disk):
		keeper, ok := e.(engine.Replacer)
		if !ok {
			return problem.New(problem.Unable, "node %s has other layers than in snapshot %s", ref.Name, r.from.ID).
				Try("orrery down %s, then restore the snapshot", ref.Name)
		}
		if err = keeper.Replace(ctx, &n.Record.Node); err == nil {
			r.replaced = append(r.replaced, ref)
		}
	case err == nil:
		r.were[ref] = engine.Progress{Configured: now.Configured, Config: now.Config, Proven: now.Proven,
			ProvenAt: now.ProvenAt, Active: now.Active}
	}
	if err != nil {
		return err
	}
	return r.prepare(ctx, r.from.PrivateDir(ref.ID), layered.Private(ref))
}

// prepare clones a tree of the snapshot beside its place.
func (r *Restore) prepare(ctx context.Context, from, to string) error {
	p, err := newDirSwap(to)
	if err != nil {
		return err
	}
	r.pairs = append(r.pairs, p)
	if err := volume.Erase(p.stagingPath()); err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(to), 0o700); err != nil {
		return err
	}
	made, err := volume.Clone(ctx, from, p.stagingPath())
	for _, what := range made.Skipped {
		r.Lost = append(r.Lost, to+": "+what)
	}
	return err
}

// swap moves everything to its place, and restores the marks of the nodes. Their health must be
// proven again.
func (r *Restore) swap(ctx context.Context) error {
	if err := r.writeSwaps(); err != nil {
		return err
	}
	for _, p := range r.pairs {
		if err := p.swap(); err != nil {
			return err
		}
	}
	for _, n := range r.nodes {
		m := engine.Progress{Configured: n.Record.Configured, Config: n.Record.Config, Active: n.Record.Active}
		if err := r.engines[n.Record.Engine].SetProgress(ctx, engine.RefOf(&n.Record.Node), m); err != nil {
			return err
		}
	}
	return r.loadMemory(r.from.MemoryPath)
}

// loadMemory makes the nodes whose memory is in the snapshot resume from a file when they are started.
// If the path is "", they boot.
func (r *Restore) loadMemory(from func(id int) string) error {
	for _, n := range r.nodes {
		e, ok := r.engines[n.Record.Engine].(engine.MemorySaver)
		if !n.Memory || !ok {
			continue
		}
		if err := e.ResumeFrom(engine.RefOf(&n.Record.Node), from(n.Record.ID)); err != nil {
			return err
		}
	}
	return nil
}

// DiscardFormer removes the former state.
func (r *Restore) DiscardFormer(ctx context.Context) error {
	err := removeSwaps(r.dirs, r.from.Site)
	if err != nil { // while the record exists, the former directories are still needed
		return err
	}
	for _, p := range r.pairs {
		err = errors.Join(err, volume.Erase(p.stagingPath()))
	}
	for _, ref := range r.replaced {
		err = errors.Join(err, r.keeper(ref).Settle(ctx, ref))
	}
	return err
}

// Undo brings back the state before Restore. The nodes must be stopped.
func (r *Restore) Undo(ctx context.Context) error {
	err := r.loadMemory(func(int) string { return "" })
	for _, p := range r.pairs {
		err = errors.Join(err, p.swapBack())
	}
	for _, ref := range r.replaced {
		err = errors.Join(err, r.keeper(ref).Restore(ctx, ref))
	}
	for _, ref := range r.created {
		err = errors.Join(err, r.engineOf(ref).Destroy(ctx, ref))
	}
	for ref, mark := range r.were {
		err = errors.Join(err, r.engineOf(ref).SetProgress(ctx, ref, mark))
	}
	if err == nil {
		err = removeSwaps(r.dirs, r.from.Site)
	}
	return err
}

func (r *Restore) engineOf(ref engine.Ref) engine.Engine {
	i := slices.IndexFunc(r.nodes, func(n Node) bool { return n.Record.ID == ref.ID })
	return r.engines[r.nodes[i].Record.Engine]
}

func (r *Restore) keeper(ref engine.Ref) engine.Replacer { return r.engineOf(ref).(engine.Replacer) }
