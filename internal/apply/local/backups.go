package local

import (
	"context"
	"io"

	"orrery/internal/backup"
	"orrery/internal/backup/ferry"
	"orrery/internal/engine"
	"orrery/internal/host"
	"orrery/internal/image"
	"orrery/internal/observe"
	"orrery/internal/problem"
	"orrery/internal/site/spec"
)

func (p *Place) quay() ferry.Place {
	return ferry.Place{Dirs: p.Dirs, Key: p.Key, Engines: p.Engines, Guard: p.Guard}
}

// GiveBackup gives what this machine has of the site.
func (p *Place) GiveBackup(ctx context.Context, way io.ReadWriter) error {
	return ferry.Give(ctx, p.quay(), way)
}

// FindBackup reads what backups have lost of what this machine gave.
func (p *Place) FindBackup(ctx context.Context, way io.ReadWriter) error {
	return ferry.Find(ctx, p.quay(), way)
}

// LayBackup lays down what comes for this machine.
func (p *Place) LayBackup(ctx context.Context, way io.ReadWriter) error {
	return ferry.Lay(ctx, p.quay(), way)
}

// part gives the part of a restore that this machine has; nil: it has none.
func (p *Place) part() (*backup.Restore, error) {
	return backup.Part(p.Dirs, image.Open(p.Dirs.State), p.Key)
}

// RestorePart tells how far it has come.
func (p *Place) RestorePart(context.Context) (*observe.Restoring, error) {
	r, err := p.part()
	if err != nil || r == nil {
		return nil, err
	}
	return r.State(), nil
}

// AdvanceRestore does a step of it. That there is none has come to its end already, or was dropped.
func (p *Place) AdvanceRestore(ctx context.Context, id, to string) ([]string, error) {
	r, err := p.part()
	if err != nil {
		return nil, err
	}
	if r == nil && (to == backup.ToFinish || to == backup.ToDrop || to == backup.ToGiveUp) {
		return nil, nil
	}
	if r == nil || r.ID != id && to != backup.ToGiveUp {
		return nil, problem.New(problem.Surprise, "nothing of backup %s is laid down on this host", id).Try("run the same orrery restore again")
	}
	lock, err := backup.TakeLock(ctx, p.Dirs, p.Key, host.NewHolder("root", "orrery restore")) // none is advanced that is being laid down
	if err != nil {
		return nil, err
	}
	defer lock.Release()
	return r.Advance(ctx, to, p.Engines)
}

// fillRestored gives a node that has just been made what it had in the backup that is being restored.
func (p *Place) fillRestored(ctx context.Context, e engine.Engine, n *spec.Node) error {
	r, err := p.part()
	if err != nil || r == nil || !r.State().Placed {
		return err
	}
	return r.Fill(ctx, e, n)
}

// sweepRestore ends a restore that nobody has ended although its nodes have what they had.
func (p *Place) sweepRestore() error {
	r, err := p.part()
	if err != nil || r == nil || !r.Over() {
		return err
	}
	return r.End(p.Engines)
}
