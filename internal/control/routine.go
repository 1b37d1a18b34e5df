package control

import (
	"context"
	"os"
	"slices"

	"orrery/internal/apply"
	"orrery/internal/control/unattended"
	"orrery/internal/journal/hook"
	"orrery/internal/observe/routine"
	"orrery/internal/problem"
	"orrery/internal/site"
)

// Routines does with a whole site what its site file schedules (package routines).
type Routines interface {
	// Do takes a backup or a snapshot as declared, and returns its name.
	Do(ctx context.Context, c *Session, s *site.Site, routine string) (made string, err error)
	// Look returns what is wrong with nodes, hosts and disks.
	Look(ctx context.Context, c *Session, s *site.Site) ([]unattended.Finding, error)
}

// siteWork does routines with a site as it was declared when it was last brought up on this machine.
// Whoever has edited its directory since does not decide what root does at night.
type siteWork struct {
	session *Session
	key     string
}

func (w siteWork) open() (*Session, *site.Site, error) {
	m, up := w.session.Register().Up(w.key)
	if !up {
		return nil, nil, problem.New(problem.Failed, "site %s is not up on this host", w.key).Try("orrery up")
	}
	s, err := w.session.Register().LoadDeclaration(m)
	if err == nil && s.Key() != w.key {
		err = problem.New(problem.Surprise, "the record of site %s is that of %s", w.key, s.Key()).Try("orrery up")
	}
	c := *w.session
	c.SiteDir, c.Named, c.Twin, c.WaitForLocks = m.Dir, m.Site, m.Twin, true
	return &c, s, err
}

func (w siteWork) Hosts(ctx context.Context) (*apply.Fleet, error) {
	c, s, err := w.open()
	if err != nil {
		return nil, err
	}
	f, _, err := c.Connector(s).ConnectWithoutReleases(ctx) // Do reports those that do not answer
	return f, err
}

func (w siteWork) Do(ctx context.Context, routine string) (made string, err error) {
	c, s, err := w.open()
	if err != nil {
		return "", err
	}
	return c.Routines.Do(ctx, c, s, routine)
}

func (w siteWork) Look(ctx context.Context) ([]unattended.Finding, error) {
	c, s, err := w.open()
	if err != nil {
		return nil, err
	}
	return c.Routines.Look(ctx, c, s)
}

// Attempt does something that the site file schedules now, and records how it went.
func Attempt(ctx context.Context, c *Session, s *site.Site, f *apply.Fleet, routine string,
	do func() (made string, err error)) (made string, err error) {
	a := unattended.Attempt{Routine: routine, Do: do, Notify: func(e hook.Event) error {
		c.NotifyHooks(ctx, s, e)
		return nil
	}}
	a.Host, _ = os.Hostname()
	for _, h := range f.All {
		if h.Local() {
			a.Host = h.Name
		}
	}
	return a.Run(ctx, f)
}

// DoBefore takes the backup and the snapshot that the site file asks for before an occasion. If it
// returns an error, the occasion must not happen.
func DoBefore(ctx context.Context, c *Session, s *site.Site, f *apply.Fleet, occasion string) error {
	for _, r := range []struct {
		name string
		when site.Schedule
	}{{routine.Backup, s.Backup.Schedule}, {routine.Snapshot, s.Snapshot}} {
		if !slices.Contains(r.when.Before, occasion) {
			continue
		}
		made, err := Attempt(ctx, c, s, f, r.name, func() (string, error) { return c.Routines.Do(ctx, c, s, r.name) })
		if err != nil {
			return problem.New(problem.Failed, "the %s before the %s failed; nothing was done", r.name, occasion).
				At(s.Key()).Because(err).
				Try("cure the cause, or take %q out of before in [%s] of site.toml", occasion, r.name)
		}
		c.Notice(s.Key(), "%s before the %s: %s", r.name, occasion, made)
	}
	return nil
}
