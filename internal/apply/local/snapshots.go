package local

import (
	"context"
	"errors"

	"orrery/internal/apply"
	"orrery/internal/problem"
	"orrery/internal/snapshot"
	"orrery/internal/volume"
)

// Snapshots gives the parts of snapshots that the host has.
func (p *Place) Snapshots(context.Context) (kept []*snapshot.Snapshot, ready []string, err error) {
	if kept, err = snapshot.List(p.Dirs, p.Key); err != nil {
		return nil, nil, err
	}
	ready, err = snapshot.Ready(p.Dirs, p.Key)
	return kept, ready, err
}

// SnapshotSize gives how large a part is.
func (p *Place) SnapshotSize(ctx context.Context, id string) (volume.Size, error) {
	s, err := snapshot.Open(p.Dirs, p.Key, id)
	if err != nil {
		return volume.Size{}, err
	}
	return volume.SizeOf(ctx, s.Dir)
}

// Restoring gives the snapshot whose restoring was cut short.
func (p *Place) Restoring(context.Context) (id string, nodes []string, err error) {
	return snapshot.Unfinished(p.Dirs, p.Key)
}

// Capture makes a part of a snapshot ready.
func (p *Place) Capture(ctx context.Context, of apply.Capture, with snapshot.Pace) (*snapshot.Snapshot, error) {
	o := snapshot.Options{Dirs: p.Dirs, Key: p.Key, Engines: p.Engines, Who: of.Who, Guard: p.Guard, Memory: of.Memory, ID: of.ID, Pace: with}
	for _, id := range of.Nodes {
		r, err := p.Ground.Records.Read(p.Key, id)
		if err != nil {
			return nil, err
		}
		o.Nodes = append(o.Nodes, r)
	}
	return snapshot.Take(ctx, o)
}

// KeepSnapshot keeps a part that is ready.
func (p *Place) KeepSnapshot(_ context.Context, id string) error {
	return snapshot.KeepReady(p.Dirs, p.Key, id)
}

// RemoveSnapshot removes a part.
func (p *Place) RemoveSnapshot(_ context.Context, id string) error {
	err := snapshot.RemoveReady(p.Dirs, p.Key, id)
	if err == nil {
		err = snapshot.Remove(p.Dirs, p.Key, id)
	}
	if problem.Is(err, problem.Usage) { // it is not there
		return nil
	}
	return err
}

// PutBack puts nodes back as they were.
func (p *Place) PutBack(ctx context.Context, id string, nodes []string, then func(apply.Back) error) error {
	from, err := snapshot.Open(p.Dirs, p.Key, id)
	if err != nil {
		return err
	}
	chosen := map[string]bool{}
	for _, name := range nodes {
		chosen[name] = true
	}
	back, err := from.PutBack(ctx, p.Dirs, p.Engines, chosen)
	if err != nil {
		return err
	}
	err = then(apply.Back{Left: back.Left, Lost: back.Lost})
	switch {
	case err == nil:
		return back.Settle(ctx)
	case ctx.Err() != nil:
		return err
	}
	if bad := back.TakeBack(context.WithoutCancel(ctx)); bad != nil {
		return errors.Join(err, bad)
	}
	return problem.New(problem.Undone, "what was there before is back").Because(err)
}
