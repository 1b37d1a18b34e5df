package control

import (
	"context"
	"maps"

	"orrery/internal/control/register"
	"orrery/internal/control/trial"
	"orrery/internal/observe"
	"orrery/internal/plan/release"
	"orrery/internal/problem"
	"orrery/internal/text/humanize"
)

// recoverSwitch completes a switch that was interrupted, so that all nodes are at one release
// before the job changes anything. It reports whether there was such a switch.
func (j *Job) recoverSwitch(ctx context.Context) (done bool, err error) {
	if j.Base == nil {
		return false, nil
	}
	f, err := j.Session.Hosts(ctx, j.Base)
	if err != nil {
		return false, err
	}
	r, err := f.Records().Read(ctx)
	if err != nil || r.Switch == nil {
		return false, err
	}
	if len(f.Unknown) > 0 {
		return false, problem.New(problem.HalfWay,
			"a switch by %s to release %s was interrupted, and the state of %s is unknown", r.Switch.Who,
			register.ReleaseNames(r.Switch.To), humanize.List(f.Unknown, 12)).At(j.Base.Key()).
			Try("bring the host back and run orrery up, which brings the set to release %s; remove a host that is lost for good from site.toml",
				register.ReleaseNames(r.Switch.End))
	}
	j.Session.Notice(j.Base.Key(), "a switch by %s to release %s was interrupted; bringing the set to release %s first",
		r.Switch.Who, register.ReleaseNames(r.Switch.To), register.ReleaseNames(r.Switch.End))
	all := []map[string]int{r.Switch.To, r.Switch.End, r.Active}
	if r.Trial != nil {
		all = append(all, map[string]int{"": r.Trial.Release})
	}
	for _, of := range all {
		if err := j.Session.Connector(j.Base).Releases(f).LoadReleases(ctx, of); err != nil {
			return false, err
		}
	}
	seen, err := j.Session.Observe(ctx, f)
	if err != nil {
		return false, err
	}
	on, back := r.Trial, maps.Equal(r.Switch.End, r.Switch.To)
	if back { // the switch would have ended the trial
		on = nil
	}
	p, err := release.Switch(j.Base, seen, release.Goal{To: r.Switch.End, Releases: f.Views().Sites(), Trial: on,
		Back: back, Ended: trial.RecoveryRecord(r, back, trial.ReasonRolledBack), Recover: true})
	if err != nil {
		return false, err
	}
	mend := &Job{Session: j.Session, Site: j.Base, Hosts: f, Parallel: j.Parallel}
	if _, err := mend.apply(ctx, p); err != nil {
		return false, problem.New(problem.HalfWay, "the set could not be brought to release %s",
			register.ReleaseNames(r.Switch.End)).At(j.Base.Key()).Because(err).
			Try("fix the cause and run the same command again")
	}
	if back && r.Trial != nil {
		NotifyTrialEnd(ctx, j.Session, j.Base, r.Trial.Release, observe.Reverted, trial.ReasonRolledBack)
	}
	if r, err = f.Records().Read(ctx); err != nil {
		return false, err
	}
	j.Hosts.InvalidateLive() // it still has the releases that were live when this run began
	return true, j.Session.Connector(j.Base).Releases(j.Hosts).LoadLive(ctx)
}
