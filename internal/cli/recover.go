package cli

import (
	"context"
	"fmt"
	"maps"

	"orrery/internal/observe"
	"orrery/internal/plan/release"
	"orrery/internal/problem"
)

// recoverSwitch brings the set of a switch that was interrupted to one release, before anything else is done.
func (j *job) recoverSwitch(ctx context.Context) error {
	if j.base == nil {
		return nil
	}
	h, err := j.here(j.base)
	if err != nil {
		return err
	}
	r, err := h.ReadReleases()
	if err != nil || r.Switch == nil {
		return err
	}
	fmt.Fprintf(j.err, "orrery: a switch of %s to release %s was interrupted; the set goes to release %s first.\n", r.Switch.Who, at(r.Switch.To), at(r.Switch.End))
	all := []map[string]int{r.Switch.To, r.Switch.End, r.Active}
	for _, of := range all {
		if err := j.loadReleases(h, of); err != nil {
			return err
		}
	}
	hosts, err := j.seen(ctx, h)
	if err != nil {
		return err
	}
	trial, back := r.Trial, maps.Equal(r.Switch.End, r.Switch.To)
	if back { // it was to end the trial, too
		trial = nil
	}
	p, err := release.Switch(j.base, hosts, release.Goal{To: r.Switch.End, Releases: sitesOf(h), Trial: trial, Back: back, Ended: wentBack(r.Trial, back, rolledBack), Recover: true})
	if err != nil {
		return err
	}
	mend := &job{app: j.app, site: j.base, host: h, parallel: j.parallel}
	if _, err := mend.apply(ctx, p); err != nil {
		return problem.New(problem.HalfWay, "the set could not be brought to release %s", at(r.Switch.End)).At(j.base.Key()).Because(err).
			Try("mend the cause and run the same command again")
	}
	if back && r.Trial != nil {
		j.tellTrialEnd(j.base, r.Trial.Release, observe.Reverted, rolledBack)
	}
	return j.loadLive(j.host) // which read what was live when this run began, and now another release may be
}
