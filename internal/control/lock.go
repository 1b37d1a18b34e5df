package control

import (
	"context"
	"os"
	"time"

	"orrery/internal/apply/local"
	"orrery/internal/host"
	"orrery/internal/problem"
	"orrery/internal/site"
)

// Locked does something to a site that is no plan: it holds the lock, clears away what killed runs left, and keeps the journal.
func (c *Session) Locked(ctx context.Context, s *site.Site, h *local.Host, do func(*Account) error) error {
	if err := c.catchUp(ctx, s, h); err != nil {
		return err
	}
	letGo, err := c.Hold(ctx, s)
	if err != nil {
		return err
	}
	defer letGo()
	if err := h.Sweep(ctx); err != nil {
		return err
	}
	return c.Journalled(s, h, do)
}

// Hold takes the lock of a site for somebody who may change it.
func (c *Session) Hold(ctx context.Context, s *site.Site) (letGo func(), err error) {
	if err := NeedRoot(); err != nil {
		return nil, err
	}
	if err := c.MayChange(s); err != nil {
		return nil, err
	}
	if err := c.Dirs.Close(s.Key()); err != nil {
		return nil, err
	}
	evict, err := host.HoldInMemory(c.Dirs.Run)
	if err != nil {
		return nil, err
	}
	lock, err := c.Lock(ctx, s)
	if err != nil {
		evict()
		return nil, err
	}
	if err := c.Dirs.Claim(s.Key()); err != nil {
		lock.Release()
		evict()
		return nil, err
	}
	return func() {
		c.Dirs.Yield(s.Key())
		lock.Release()
		evict()
	}, nil
}

// Lock takes the lock of a site; who is patient waits for whoever has it.
func (c *Session) Lock(ctx context.Context, s *site.Site) (*host.Lock, error) {
	for {
		lock, err := host.TakeLock(c.Dirs.Lock(s.Key()), host.Holder{Who: Who(), Pid: os.Getpid(), Since: time.Now(), Command: c.Command})
		if !c.Patient || err == nil || problem.Exit(err) != int(problem.Locked) {
			return lock, err
		}
		select {
		case <-time.After(100 * time.Millisecond):
		case <-ctx.Done():
			return nil, err
		}
	}
}

// Patiently gives an app that waits for whoever else is at work.
func (c *Session) Patiently() *Session {
	b := *c
	b.Patient = true
	return &b
}
