package control

import (
	"context"

	"orrery/internal/apply"
	"orrery/internal/host"
	"orrery/internal/host/waits"
	"orrery/internal/site"
)

// LockedOn changes a site on its hosts without a plan. It holds the lock, removes what killed runs
// left, and keeps the journal while do runs.
func (c *Session) LockedOn(ctx context.Context, s *site.Site, f *apply.Fleet, do func(*Account) error) error {
	if err := c.CatchUp(ctx, s, f); err != nil {
		return err
	}
	letGo, err := c.Hold(ctx, s, f)
	if err != nil {
		return err
	}
	defer letGo()
	if err := f.Sweep(ctx); err != nil {
		return err
	}
	return journalled(ctx, c, f, do)
}

// Hold takes the lock of a site on its hosts, if the caller may change the site. If the session is
// patient, Hold waits until the current holder releases the lock.
func (c *Session) Hold(ctx context.Context, s *site.Site, f *apply.Fleet) (letGo func(), err error) {
	if err := mayChange(c, f); err != nil {
		return nil, err
	}
	if err := c.MayChange(s); err != nil {
		return nil, err
	}
	if !c.Patient {
		return f.Hold(ctx, Holder(c))
	}
	err = waits.For(ctx, "site "+s.Key(), func() (held waits.Held, err error) {
		letGo, err = f.Hold(ctx, Holder(c))
		return waits.Locked(err)
	})
	return letGo, err
}

// Holder returns the lock holder's description: the user and the command of the session.
func Holder(c *Session) host.Holder {
	return host.NewHolder(Who(), c.Command)
}

// Patiently returns a session that waits for locks held by other processes.
func (c *Session) Patiently() *Session {
	b := *c
	b.Patient = true
	return &b
}
