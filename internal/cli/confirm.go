package cli

import (
	"context"
	"fmt"
	"maps"
	"time"

	"github.com/spf13/cobra"

	"orrery/internal/apply/local"
	"orrery/internal/host/later"
	"orrery/internal/observe"
	"orrery/internal/problem"
	"orrery/internal/site"
)

func (a *app) confirmVerb() *cobra.Command {
	return &cobra.Command{
		Use:   "confirm",
		Short: "Keep the release that is on trial",
		Long: `Ends the trial that "orrery switch --confirm-within" began: the release stays live.
The exit status is 0 if it does and 13 if the set has gone back already.`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			s, err := a.load()
			if err != nil {
				return err
			}
			return a.confirm(c.Context(), s, "by hand")
		},
	}
}

func (a *app) confirm(ctx context.Context, s *site.Site, why string) error {
	t, err := a.newTurn(s)
	if err != nil {
		return err
	}
	if err := a.catchUp(ctx, s, t.host); err != nil {
		return err
	}
	letGo, err := a.patiently().hold(ctx, s)
	if err != nil {
		return err
	}
	defer letGo()
	r, err := t.host.ReadReleases()
	if err != nil {
		return err
	}
	if r.Trial == nil {
		return a.verdictOf(s, r)
	}
	number := r.Trial.Release
	r.Confirm(number)
	r.Ended, r.Trial = ended(r.Trial, observe.Confirmed, why), nil
	if err := t.host.WriteReleases(r); err != nil {
		return err
	}
	a.tellTrialEnd(s, number, observe.Confirmed, why)
	fmt.Fprintf(a.out, "%s: release %d is confirmed (%s).\n", s.Key(), number, why)
	return a.note(s, "orrery confirm", fmt.Sprintf("release %d is confirmed (%s)", number, why))
}

// rolledBack is why a trial ends that somebody ends by a rollback.
const rolledBack = "it was rolled back"

// ended gives the record of how a trial ends now.
func ended(trial *observe.Trial, result, why string) *observe.TrialEnd {
	return &observe.TrialEnd{Release: trial.Release, Result: result, Why: why, When: time.Now().UTC().Truncate(time.Second)}
}

// wentBack gives the record of how a trial ends with a switch back; nil: none does.
func wentBack(trial *observe.Trial, back bool, why string) *observe.TrialEnd {
	if trial == nil || !back {
		return nil
	}
	return ended(trial, observe.Reverted, why)
}

// verdictOf says how the last trial ended.
func (a *app) verdictOf(s *site.Site, r observe.Releases) error {
	switch {
	case r.Switch != nil:
		return problem.New(problem.HalfWay, "a switch to release %s was interrupted", at(r.Switch.To)).At(s.Key()).
			Try("orrery up brings the set to one release")
	case r.Ended == nil:
		return problem.New(problem.Mistake, "no release is on trial").At(s.Key()).Try("orrery switch --confirm-within 10m begins one")
	case r.Ended.Result == observe.Reverted:
		return problem.New(problem.Reverted, "release %d has gone back: %s", r.Ended.Release, r.Ended.Why).At(s.Key())
	}
	fmt.Fprintf(a.out, "%s: release %d is confirmed (%s).\n", s.Key(), r.Ended.Release, r.Ended.Why)
	return nil
}

// trialName is what the process that watches over a trial is known by.
func trialName(s *site.Site) string { return "trial-" + s.Key() }

// forgetLive ends what was under way of releases when all nodes of a site have ended. Which were live is kept for the next up.
func (a *app) forgetLive(s *site.Site, h *local.Host) error {
	r, err := h.ReadReleases()
	if err != nil || r.Former == nil && r.Switch == nil && r.Trial == nil && r.Ended == nil {
		return err
	}
	if r.Switch != nil { // interrupted; the next up goes where it was to end
		r.Active = maps.Clone(r.Active)
		if r.Active == nil {
			r.Active = map[string]int{}
		}
		maps.Copy(r.Active, r.Switch.End)
	}
	r.Former, r.Switch, r.Trial, r.Ended = nil, nil, nil, nil
	if err := h.WriteReleases(r); err != nil { // while it is on trial, it is watched
		return err
	}
	return later.Cancel(trialName(s), a.dirs)
}

// sameSite gives the command line of another verb for this site.
func (a *app) sameSite(verb ...string) ([]string, error) {
	dir, err := a.absolute()
	if err != nil {
		return nil, err
	}
	args := []string{"-C", dir, "--force"}
	if a.twin != "" {
		args = append(args, "--twin", a.twin)
	}
	return append(args, verb...), nil
}
