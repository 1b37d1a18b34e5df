package control

import (
	"context"
	"errors"
	"path/filepath"
	"strings"

	"orrery/internal/apply"
	"orrery/internal/control/register"
	"orrery/internal/control/unattended"
	"orrery/internal/observe"
	"orrery/internal/phrase"
	"orrery/internal/problem"
	"orrery/internal/site"
)

// ResumeExpiries destroys the twins whose time is over, and has the time of others waited for: what waited for
// it did not outlive the reboot.
func (c *Session) ResumeExpiries(ctx context.Context) error {
	var all error
	for _, l := range c.lapses(ctx, 0) {
		if l.At.IsZero() { // its nodes come up first
			continue
		}
		if err := c.mend(ctx, &l); err != nil {
			c.trouble(l.Key, err)
			_, name, _ := strings.Cut(l.Key, ".")
			all = errors.Join(all, problem.New(problem.Failed, "twin %s could not be ended on time", l.Key).Try("orrery twin destroy %s", name))
		}
	}
	return all
}

// ResumeAlone brings up what this host has of sites on several hosts, each by what the host itself has on
// record, and gives their keys. Trials of them are watched again.
func (c *Session) ResumeAlone(ctx context.Context) (keys []string, err error) {
	if err := c.Allowed(); err != nil {
		return nil, err
	}
	keys, err = unattended.Resume(ctx, c.Dirs, c.Unattended)
	c.WaitAgain(ctx)
	return keys, err
}

// Unattended returns this machine as it carries out its plans for a site.
func (c *Session) Unattended(key string) *unattended.Host {
	return &unattended.Host{
		Machine: c.machine(), Dirs: c.Dirs, Key: key, Say: func(err error) { c.trouble(key, err) }, Tell: func(format string, args ...any) { c.Outcome(key, format, args...) },
	}
}

// ResumeSite brings up a site that was up. It gives the site as far as it could be read.
func (c *Session) ResumeSite(ctx context.Context, m register.Marker) (*site.Site, *apply.Result, error) {
	b := c.atWork()
	b.SiteDir, b.Twin, b.Force = m.Dir, m.Twin, true
	var r *apply.Result
	s, err := b.Load()
	if err == nil {
		r, err = b.up(ctx, s, nil, UpOptions{})
	}
	if err != nil {
		c.trouble(m.Key(), err)
		err = problem.New(problem.Failed, "site %s was not brought up", m.Key()).At(filepath.Join(m.Dir, "site.toml"))
	}
	return s, r, err
}

// TellTrial says how a trial will end.
func (c *Session) TellTrial(s *site.Site, trial *observe.Trial) {
	how := "stays with \"orrery confirm\", or if its health checks hold until then,"
	if trial.ByHand {
		how = "stays with \"orrery confirm\" only,"
	}
	c.Outcome(s.Key(), "%s: release %s is on trial until %s: it %s and goes back to release %s otherwise",
		s.Key(), site.ReleaseName(trial.Release), phrase.Clock(trial.Until), how, register.ReleaseNames(trial.Back))
}
