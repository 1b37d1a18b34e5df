package control

import (
	"context"
	"errors"
	"path/filepath"

	"orrery/internal/apply"
	"orrery/internal/control/register"
	"orrery/internal/host/later"
	"orrery/internal/observe"
	"orrery/internal/phrase"
	"orrery/internal/problem"
	"orrery/internal/site"
)

// ResumeExpiries destroys the twins whose time is over, and sees to it that others are destroyed in their time: what waited for that
// did not outlive the reboot.
func (c *Session) ResumeExpiries(ctx context.Context) error {
	var all error
	for _, r := range c.forgottenTwins(0) {
		if err := c.endForgotten(ctx, r); err != nil {
			c.trouble(r.Key(), err)
			all = errors.Join(all, problem.New(problem.Failed, "twin %s could not be ended on time", r.Key()).Try("orrery twin destroy %s", r.Options.Name))
		}
	}
	return all
}

// ResumeSite brings up a site that was up. It gives the site as far as it could be read.
func (c *Session) ResumeSite(ctx context.Context, m register.Marker) (*site.Site, *apply.Result, error) {
	b := c.atWork()
	b.SiteDir, b.Twin, b.Force = m.Dir, m.Twin, true
	s, r, err := b.resumeRestored(ctx, m)
	if err != nil {
		c.trouble(m.Key(), err)
		err = problem.New(problem.Failed, "site %s was not brought up", m.Key()).At(filepath.Join(m.Dir, "site.toml"))
	}
	return s, r, err
}

// watchTrial lets a process watch over a trial, whatever becomes of this one.
func (c *Session) watchTrial(s *site.Site) error {
	args, err := c.SameSite("trial")
	if err != nil {
		return err
	}
	return c.machine().Later(later.Call{Name: trialName(s), Args: args})
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
