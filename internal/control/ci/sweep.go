package ci

import (
	"context"
	"errors"
	"os"
	"path/filepath"

	"orrery/internal/control"
	"orrery/internal/control/twins"
	"orrery/internal/host"
	"orrery/internal/problem"
	"orrery/internal/site/twin"
)

// lock is held by the run that has made a twin.
func (p *Proof) lock(key string) string { return filepath.Join(p.Session.Dirs.Site(key), "ci.lock") }

// sweep ends the twins of runs that were killed. One that was left on purpose has no such lock.
func (p *Proof) sweep(ctx context.Context) error {
	locks, err := filepath.Glob(p.lock(p.original.Name + "." + prefix + "*"))
	if err != nil {
		return err
	}
	for _, path := range locks {
		lock, err := host.TakeLock(ctx, path, control.Holder(p.Session))
		if err != nil {
			continue // its run lives
		}
		err = p.sweepOne(ctx, filepath.Base(filepath.Dir(path)))
		lock.Release()
		if err != nil {
			return err
		}
	}
	return nil
}

func (p *Proof) sweepOne(ctx context.Context, key string) error {
	record, err := p.Session.Register().ReadTwin(key)
	if errors.Is(err, os.ErrNotExist) { // it was killed before there was a twin
		return p.Session.Dirs.RemoveSite(key)
	}
	if err != nil {
		return err
	}
	p.watcher.Swept(record.Options.Name)
	return p.end(ctx, record)
}

// end ends a twin, wherever it is.
func (p *Proof) end(ctx context.Context, r twin.Record) error {
	b := *p.Session
	b.Force = true
	if err := twins.Destroy(ctx, &b, r.Options.Name); err != nil && !problem.Is(err, problem.Mistake) {
		// there may be none yet
		return err
	}
	return p.Session.Dirs.RemoveSite(r.Key()) // with the lock of this run
}
