package local

import (
	"context"
	"errors"

	"orrery/internal/apply"
	"orrery/internal/problem"
	"orrery/internal/snapshot"
	"orrery/internal/volume"
)

// List returns the parts of snapshots on the host.
func (h snapshotHost) List(context.Context) (kept []*snapshot.Snapshot, ready []string, err error) {
	if kept, err = snapshot.List(h.Dirs, h.Key); err != nil {
		return nil, nil, err
	}
	ready, err = snapshot.ListPrepared(h.Dirs, h.Key)
	return kept, ready, err
}

// Size returns the size of a part.
func (h snapshotHost) Size(ctx context.Context, id string) (volume.Size, error) {
	s, err := snapshot.Open(h.Dirs, h.Key, id)
	if err != nil {
		return volume.Size{}, err
	}
	return volume.SizeOf(ctx, s.Dir)
}

// Restoring returns the snapshot whose restore was interrupted.
func (h snapshotHost) Restoring(context.Context) (id string, nodes []string, err error) {
	return snapshot.Interrupted(h.Dirs, h.Key)
}

// Capture makes a part of a snapshot ready.
func (h snapshotHost) Capture(ctx context.Context, of apply.SnapshotRequest,
	with snapshot.Barrier) (*snapshot.Snapshot, error) {
	o := snapshot.Options{Dirs: h.Dirs, Key: h.Key, Engines: h.Engines, Who: of.Who, Guard: h.Guard, Memory: of.Memory,
		ID: of.ID, Barrier: with, Scheduled: of.Scheduled}
	for _, id := range of.Nodes {
		r, err := h.Backends.Records.Read(h.Key, id)
		if err != nil {
			return nil, err
		}
		o.Nodes = append(o.Nodes, r)
	}
	return snapshot.Take(ctx, o)
}

// Keep stores a part that is ready.
func (h snapshotHost) Keep(_ context.Context, id string) error {
	return snapshot.KeepReady(h.Dirs, h.Key, id)
}

// Remove removes a part.
func (h snapshotHost) Remove(_ context.Context, id string) error {
	err := snapshot.RemoveReady(h.Dirs, h.Key, id)
	if err == nil {
		err = snapshot.Remove(h.Dirs, h.Key, id)
	}
	if problem.Is(err, problem.Usage) { // there is none
		return nil
	}
	return err
}

// Restore restores nodes from a snapshot.
func (h snapshotHost) Restore(ctx context.Context, id string, nodes []string,
	then func(apply.RestoreFailures) error) error {
	from, err := snapshot.Open(h.Dirs, h.Key, id)
	if err != nil {
		return err
	}
	chosen := map[string]bool{}
	for _, name := range nodes {
		chosen[name] = true
	}
	back, err := from.Restore(ctx, h.Dirs, h.Engines, chosen)
	if err != nil {
		return err
	}
	err = then(apply.RestoreFailures{Left: back.Left, Lost: back.Lost})
	switch {
	case err == nil:
		return back.DiscardFormer(ctx)
	case ctx.Err() != nil:
		return err
	}
	if bad := back.Undo(context.WithoutCancel(ctx)); bad != nil {
		return errors.Join(err, bad)
	}
	return problem.New(problem.Undone, "the previous state was restored").Because(err)
}
