package control

import (
	"context"
	"fmt"

	"orrery/internal/apply"
	"orrery/internal/control/hosts"
	"orrery/internal/control/register"
	"orrery/internal/control/trial"
	"orrery/internal/observe"
	"orrery/internal/problem"
	"orrery/internal/site"
)

// rolledBack is why a trial ends that somebody ends by a rollback.
const rolledBack = "it was rolled back"

// Confirm ends the trial of a release: it stays live. If there is none, it gives how the last one ended.
func (c *Session) Confirm(ctx context.Context, s *site.Site, why string) (*observe.TrialEnd, error) {
	t, err := c.newChange(ctx, s)
	if err != nil {
		return nil, err
	}
	if err := c.catchUp(ctx, s, t.hosts.All[0]); err != nil {
		return nil, err
	}
	letGo, err := c.Patiently().Hold(ctx, s, t.hosts)
	if err != nil {
		return nil, err
	}
	defer letGo()
	r, err := t.hosts.ReadReleases()
	if err != nil {
		return nil, err
	}
	if r.Trial == nil {
		return verdictOf(s, r)
	}
	number := r.Trial.Release
	r.Confirm(number)
	r.Ended, r.Trial = trial.End(r.Trial, observe.Confirmed, why), nil
	if err := t.hosts.WriteReleases(r); err != nil {
		return nil, err
	}
	c.TellTrialEnd(s, number, observe.Confirmed, why)
	return r.Ended, c.Note(s, "orrery confirm", fmt.Sprintf("release %d is confirmed (%s)", number, why))
}

// verdictOf says how the last trial ended. That it did not end well is the error.
func verdictOf(s *site.Site, r observe.Releases) (*observe.TrialEnd, error) {
	switch {
	case r.Switch != nil:
		return nil, problem.New(problem.HalfWay, "a switch to release %s was interrupted", register.ReleaseNames(r.Switch.To)).At(s.Key()).
			Try("orrery up brings the set to one release")
	case r.Ended == nil:
		return nil, problem.New(problem.Mistake, "no release is on trial").At(s.Key()).Try("orrery switch --confirm-within 10m begins one")
	case r.Ended.Result == observe.Reverted:
		return r.Ended, problem.New(problem.Reverted, "release %d has gone back: %s", r.Ended.Release, r.Ended.Why).At(s.Key())
	}
	return r.Ended, nil
}

// trialName is what the process that watches over a trial is known by.
func trialName(s *site.Site) string { return "trial-" + s.Key() }

// forgetLive ends what was under way of releases when all nodes of a site have ended, on all of its hosts. Which were live is kept for the next up.
func (c *Session) forgetLive(s *site.Site, f *apply.Fleet) error {
	r, err := f.ReadReleases()
	if err != nil || r.Former == nil && r.Switch == nil && r.Trial == nil && r.Ended == nil {
		return err
	}
	r.Active = r.Resting()
	r.Former, r.Switch, r.Trial, r.Ended = nil, nil, nil, nil
	if err := f.WriteReleases(r); err != nil || hosts.Far(s) { // no trial is on other hosts
		return err
	}
	return c.machine().Cancel(trialName(s)) // last: while it is on trial, it is watched
}
