package hosts

import (
	"context"
	"errors"
	"maps"
	"slices"

	"orrery/internal/apply"
	"orrery/internal/control/register"
	"orrery/internal/host"
	"orrery/internal/observe"
	"orrery/internal/problem"
	"orrery/internal/site"
	"orrery/internal/text/humanize"
)

// TrialFailures returns what the hosts that answer have recorded as failures of a trial, by host name.
func TrialFailures(ctx context.Context, f *apply.Fleet) (why map[string]string, err error) {
	all := make([]string, len(f.All))
	err = f.ForEach(func(i int, h *apply.HostClient) error {
		r, err := h.Releases.Read(ctx)
		if err == nil && r.Trial != nil {
			all[i] = problem.Truncate(r.Trial.Failed, 300) // shortened, because it comes from another host
		}
		return err
	})
	why = map[string]string{}
	for i, text := range all {
		if text != "" {
			why[f.All[i].Name] = text
		}
	}
	return why, err
}

// FirstHost returns the host name that sorts first.
func FirstHost(why map[string]string) string { return slices.Sorted(maps.Keys(why))[0] }

// CheckConfirmable returns a Refused problem if the release has failed on a host.
func CheckConfirmable(ctx context.Context, f *apply.Fleet, key string, t *observe.Trial) error {
	failing, err := TrialFailures(ctx, f)
	if err != nil || len(failing) == 0 {
		return err
	}
	on := FirstHost(failing)
	return problem.New(problem.Refused, "release %d has failed on host %s: %s", t.Release, on, failing[on]).At(key).
		Try("orrery rollback goes back now; otherwise all hosts go back at %s", humanize.Time(t.Until))
}

// ReportTrial reports a trial that is under way, and the hosts on which it has failed.
func (c *Connector) ReportTrial(ctx context.Context, f *apply.Fleet, r observe.Releases) error {
	if r.Trial == nil || r.Switch != nil {
		return nil
	}
	until, back := humanize.Time(r.Trial.Until), register.ReleaseNames(r.Trial.Back)
	switch {
	case c.DecidesTrials() && !host.IsLocked(apply.WatchLock(c.Dirs, c.Site.Key(), apply.TriggerTrial)):
		c.Notice("release %d is on trial until %s, but the process that watched it has ended (orrery resume, or any change to the site, starts it again)",
			r.Trial.Release, until)
	case !r.Trial.ByHand:
		c.Notice("release %d is on trial until %s; then it is confirmed or goes back to release %s", r.Trial.Release, until,
			back)
	case len(f.All)+len(f.Unknown) == 1:
		c.Notice("release %d is on trial until %s; unless it is confirmed by then (orrery confirm), it goes back to release %s",
			r.Trial.Release, until, back)
	default:
		c.Notice("release %d is on trial until %s; unless it is confirmed by then (orrery confirm), each host goes back to release %s",
			r.Trial.Release, until, back)
	}
	failing, err := TrialFailures(ctx, f)
	for _, name := range slices.Sorted(maps.Keys(failing)) {
		c.Notice("the release has failed on host %s: %s", name, failing[name])
	}
	return err
}

// WithdrawConfirmation lets the trial continue after a host could not be told that the release is confirmed.
// That host will go back on its own, so all hosts must.
func WithdrawConfirmation(ctx context.Context, f *apply.Fleet, key string, cause error, before observe.Releases) error {
	if len(f.All) == 1 {
		return cause
	}
	ctx = context.WithoutCancel(ctx) // otherwise only that host would go back
	left := f.ForEach(func(_ int, h *apply.HostClient) error {
		current, err := h.Releases.Read(ctx)
		if err != nil || current.State() == before.State() {
			return err
		}
		return h.Releases.Copy(ctx, before)
	})
	return problem.New(problem.HalfWay,
		"release %d could not be confirmed on all hosts; unless it is confirmed by %s, each host goes back", before.Trial.Release,
		humanize.Time(before.Trial.Until)).At(key).
		Because(errors.Join(cause, left)).Try("when all hosts answer, orrery confirm or orrery rollback")
}

// RecordConfirmed records on all hosts that all of them know that the release is confirmed. From then on, no
// host can claim that it has gone back. If a host cannot record this, the release is confirmed all
// the same.
func RecordConfirmed(ctx context.Context, f *apply.Fleet, r observe.Releases) {
	if len(f.All) == 1 {
		return
	}
	ended := *r.Ended
	ended.Settled = true
	r.Ended = &ended
	_ = f.Records().Write(ctx, r)
}

// TrialResult returns how the last trial ended. It returns an error if the trial did not end well.
func TrialResult(s *site.Site, r observe.Releases) (*observe.TrialEnd, error) {
	switch {
	case r.Switch != nil:
		return nil, problem.New(problem.HalfWay, "a switch to release %s was interrupted",
			register.ReleaseNames(r.Switch.To)).At(s.Key()).
			Try("orrery up brings the set to one release")
	case r.Ended == nil:
		return nil, problem.New(problem.Mistake, "no release is on trial").At(s.Key()).
			Try("orrery switch --confirm-within 10m starts one")
	case r.Ended.Result == observe.Reverted:
		return r.Ended, problem.New(problem.Reverted, "release %d has gone back: %s", r.Ended.Release, r.Ended.Why).
			At(s.Key())
	}
	return r.Ended, nil
}
