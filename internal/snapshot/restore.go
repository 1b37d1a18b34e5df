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

// A Restore puts nodes, all stopped, back as they were in a snapshot. What was there before is kept
// until Settle, and comes back with TakeBack.
type Restore struct {
	Left []string // volumes that stay as they are, and why
	Lost []string // what of the snapshot could not be put back, and why

	from     *Snapshot
	dirs     host.Dirs
	engines  map[string]engine.Engine
	nodes    []Node
	volumes  []Volume
	created  []engine.Ref
	replaced []engine.Ref
	were     map[engine.Ref]engine.Mark // how far the nodes had come that are neither created nor replaced
	pairs    []*pair
}

// PutBack puts some nodes of a snapshot (nil: all) back as they were, with their volumes. If it
// fails, all is as it was before.
func (s *Snapshot) PutBack(ctx context.Context, dirs host.Dirs, engines map[string]engine.Engine,
	chosen map[string]bool) (*Restore, error) {
	if err := s.MayPutBack(dirs, chosen); err != nil {
		return nil, err
	}
	if err := Recover(dirs, s.Site); err != nil {
		return nil, err
	}
	r := &Restore{from: s, dirs: dirs, engines: engines, nodes: s.Chosen(chosen), were: map[engine.Ref]engine.Mark{}}
	err := r.chooseVolumes()
	for _, n := range r.nodes {
		if err == nil {
			err = r.prepareNode(ctx, n)
		}
	}
	for _, v := range r.volumes {
		if err == nil {
			err = r.prepare(ctx, s.Kept(v), v.Path)
		}
	}
	if err == nil {
		err = r.swap(ctx)
	}
	if err != nil {
		return nil, errors.Join(err, r.TakeBack(context.WithoutCancel(ctx)))
	}
	return r, nil
}

// MayPutBack refuses to put nodes back while the restoring of others, who may run by now, has been cut short.
func (s *Snapshot) MayPutBack(dirs host.Dirs, chosen map[string]bool) error {
	id, nodes, err := Unfinished(dirs, s.Site)
	if err != nil || id == "" {
		return err
	}
	covered := !slices.ContainsFunc(nodes, func(name string) bool { return chosen != nil && !chosen[name] })
	if id == s.ID && covered {
		return nil
	}
	return cutShort(dirs, s.Site, id, nodes)
}

// Chosen returns the nodes of a snapshot that are among those chosen (nil: all).
func (s *Snapshot) Chosen(chosen map[string]bool) []Node {
	return slices.DeleteFunc(slices.Clone(s.Nodes), func(n Node) bool { return chosen != nil && !chosen[n.Record.Name] })
}

// chooseVolumes leaves alone what a node uses that stays as it is.
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
			r.Left = append(r.Left, v.Name+": node "+other+" uses it too, and is not put back")
		} else if uses[v.Path] {
			r.volumes = append(r.volumes, v)
		}
	}
	return err
}

// prepareNode makes a node stand on the layers of then, and its private layer of then ready beside that of now.
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
		keeper, ok := e.(engine.Keeper)
		if !ok {
			return problem.New(problem.Unable, "node %s has other layers than in snapshot %s", ref.Name, r.from.ID).
				Try("orrery down %s, then restore the snapshot", ref.Name)
		}
		if err = keeper.Replace(ctx, &n.Record.Node); err == nil {
			r.replaced = append(r.replaced, ref)
		}
	case err == nil:
		r.were[ref] = engine.Mark{Configured: now.Configured, Config: now.Config, Proven: now.Proven,
			ProvenAt: now.ProvenAt, Active: now.Active}
	}
	if err != nil {
		return err
	}
	return r.prepare(ctx, r.from.Private(ref.ID), layered.Private(ref))
}

// prepare clones a tree of the snapshot beside the place where it belongs.
func (r *Restore) prepare(ctx context.Context, from, to string) error {
	p, err := newPair(to)
	if err != nil {
		return err
	}
	r.pairs = append(r.pairs, p)
	if err := volume.Erase(p.aside()); err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(to), 0o700); err != nil {
		return err
	}
	made, err := volume.Clone(ctx, from, p.aside())
	for _, what := range made.Left {
		r.Lost = append(r.Lost, to+": "+what)
	}
	return err
}

// swap puts everything in place, and notes on the nodes how far they had come then. That they are
// healthy is to be proven again.
func (r *Restore) swap(ctx context.Context) error {
	if err := r.writePairs(); err != nil {
		return err
	}
	for _, p := range r.pairs {
		if err := p.swap(); err != nil {
			return err
		}
	}
	for _, n := range r.nodes {
		m := engine.Mark{Configured: n.Record.Configured, Config: n.Record.Config, Active: n.Record.Active}
		if err := r.engines[n.Record.Engine].Mark(ctx, engine.RefOf(&n.Record.Node), m); err != nil {
			return err
		}
	}
	return r.recall(r.from.Memory)
}

// recall lets the nodes whose memory is in the snapshot go on from a file when they are started; "": they boot.
func (r *Restore) recall(from func(id int) string) error {
	for _, n := range r.nodes {
		e, ok := r.engines[n.Record.Engine].(engine.Rememberer)
		if !n.Memory || !ok {
			continue
		}
		if err := e.Recall(engine.RefOf(&n.Record.Node), from(n.Record.ID)); err != nil {
			return err
		}
	}
	return nil
}

// Settle removes what was there before.
func (r *Restore) Settle(ctx context.Context) error {
	err := removePairs(r.dirs, r.from.Site)
	if err != nil { // as long as it says that all goes back, what goes back stays
		return err
	}
	for _, p := range r.pairs {
		err = errors.Join(err, volume.Erase(p.aside()))
	}
	for _, ref := range r.replaced {
		err = errors.Join(err, r.keeper(ref).Settle(ctx, ref))
	}
	return err
}

// TakeBack puts all back as it was before PutBack. The nodes must be stopped.
func (r *Restore) TakeBack(ctx context.Context) error {
	err := r.recall(func(int) string { return "" })
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
		err = errors.Join(err, r.engineOf(ref).Mark(ctx, ref, mark))
	}
	if err == nil {
		err = removePairs(r.dirs, r.from.Site)
	}
	return err
}

func (r *Restore) engineOf(ref engine.Ref) engine.Engine {
	i := slices.IndexFunc(r.nodes, func(n Node) bool { return n.Record.ID == ref.ID })
	return r.engines[r.nodes[i].Record.Engine]
}

func (r *Restore) keeper(ref engine.Ref) engine.Keeper { return r.engineOf(ref).(engine.Keeper) }
