package control

import (
	"context"

	"orrery/internal/apply"
	"orrery/internal/host"
	"orrery/internal/host/waits"
	"orrery/internal/site"
)

// RunLocked changes a site on its hosts without a plan. It holds the lock, removes what killed runs
// left, and keeps the journal while do runs.
func (c *Session) RunLocked(ctx context.Context, s *site.Site, f *apply.Fleet, do func(*JournalWriter) error) error {
	if err := c.CatchUp(ctx, s, f); err != nil {
		return err
	}
	letGo, err := c.LockSite(ctx, s, f)
	if err != nil {
		return err
	}
	defer letGo()
	if err := f.Sweep(ctx); err != nil {
		return err
	}
	return runJournaled(ctx, c, f, do)
}

// LockSite takes the lock of a site on its hosts, if the caller may change the site. If the session is
// patient, it waits until the current holder releases the lock.
func (c *Session) LockSite(ctx context.Context, s *site.Site, f *apply.Fleet) (letGo func(), err error) {
	if err := checkMayChange(c, f); err != nil {
		return nil, err
	}
	if err := c.MayChange(s); err != nil {
		return nil, err
	}
	if !c.WaitForLocks {
		return f.LockAll(ctx, Holder(c))
	}
	err = waits.For(ctx, "site "+s.Key(), func() (held waits.Holder, err error) {
		letGo, err = f.LockAll(ctx, Holder(c))
		return waits.HolderOf(err)
	})
	return letGo, err
}

// Holder returns the lock holder's description: the user and the command of the session.
func Holder(c *Session) host.Holder {
	return host.NewHolder(UserName(), c.Command)
}

// WaitingForLocks returns a session that waits for locks held by other processes.
func (c *Session) WaitingForLocks() *Session {
	b := *c
	b.WaitForLocks = true
	return &b
}
