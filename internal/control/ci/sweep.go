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

// lockPath returns the path of the lock that a run holds while its twin exists.
func (p *Runner) lockPath(key string) string {
	return filepath.Join(p.Session.Dirs.Site(key), "ci.lock")
}

// sweep destroys the twins of killed runs. A twin that was kept on purpose has no such lock.
func (p *Runner) sweep(ctx context.Context) error {
	locks, err := filepath.Glob(p.lockPath(p.original.Name + "." + twinPrefix + "*"))
	if err != nil {
		return err
	}
	for _, path := range locks {
		lock, err := host.TakeLock(ctx, path, control.Holder(p.Session))
		if err != nil {
			continue // its run is alive
		}
		err = p.sweepOne(ctx, filepath.Base(filepath.Dir(path)))
		lock.Release()
		if err != nil {
			return err
		}
	}
	return nil
}

func (p *Runner) sweepOne(ctx context.Context, key string) error {
	record, err := p.Session.Register().ReadTwin(key)
	if errors.Is(err, os.ErrNotExist) { // the run was killed before it created the twin
		return p.Session.Dirs.RemoveSite(key)
	}
	if err != nil {
		return err
	}
	p.watcher.Swept(record.Options.Name)
	return p.destroyTwin(ctx, record)
}

// destroyTwin destroys a twin, on whatever hosts it is.
func (p *Runner) destroyTwin(ctx context.Context, r twin.Record) error {
	b := *p.Session
	b.Force = true
	if err := twins.Destroy(ctx, &b, r.Options.Name); err != nil && !problem.Is(err, problem.Mistake) {
		// the twin may not exist yet
		return err
	}
	return p.Session.Dirs.RemoveSite(r.Key()) // together with the lock of this run
}
