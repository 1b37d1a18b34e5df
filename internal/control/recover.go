package control

import (
	"context"
	"maps"

	"orrery/internal/apply"
	"orrery/internal/control/hosts"
	"orrery/internal/control/register"
	"orrery/internal/control/trial"
	"orrery/internal/observe"
	"orrery/internal/plan/release"
	"orrery/internal/problem"
)

// recoverSwitch brings the set of a switch that was interrupted to one release, before anything else is done.
func (j *Job) recoverSwitch(ctx context.Context) error {
	if j.Base == nil || hosts.Far(j.Base) { // releases are on this machine alone
		return nil
	}
	h, err := j.Here(j.Base)
	if err != nil {
		return err
	}
	r, err := h.ReadReleases()
	if err != nil || r.Switch == nil {
		return err
	}
	j.notice(j.Base.Key(), "a switch of %s to release %s was interrupted; the set goes to release %s first", r.Switch.Who, register.ReleaseNames(r.Switch.To), register.ReleaseNames(r.Switch.End))
	all := []map[string]int{r.Switch.To, r.Switch.End, r.Active}
	for _, of := range all {
		if err := j.LoadReleases(h, of); err != nil {
			return err
		}
	}
	hosts, err := j.Seen(ctx, apply.Alone(h))
	if err != nil {
		return err
	}
	on, back := r.Trial, maps.Equal(r.Switch.End, r.Switch.To)
	if back { // it was to end the trial, too
		on = nil
	}
	p, err := release.Switch(j.Base, hosts, release.Goal{To: r.Switch.End, Releases: SitesOf(h), Trial: on, Back: back, Ended: trial.WentBack(r.Trial, back, rolledBack), Recover: true})
	if err != nil {
		return err
	}
	mend := &Job{Session: j.Session, Site: j.Base, Hosts: apply.Alone(h), Parallel: j.Parallel}
	if _, err := mend.apply(ctx, p); err != nil {
		return problem.New(problem.HalfWay, "the set could not be brought to release %s", register.ReleaseNames(r.Switch.End)).At(j.Base.Key()).Because(err).
			Try("fix the cause and run the same command again")
	}
	if back && r.Trial != nil {
		j.TellTrialEnd(j.Base, r.Trial.Release, observe.Reverted, rolledBack)
	}
	return j.LoadLive(j.Hosts.All[0]) // which read what was live when this run began, and now another release may be
}
