package cli

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/spf13/cobra"

	"orrery/internal/host/later"
	"orrery/internal/observe"
	"orrery/internal/problem"
	"orrery/internal/site"
)

func (a *app) resumeVerb() *cobra.Command {
	return &cobra.Command{
		Use:   "resume",
		Short: "Bring up again every site that was up on this host (after a reboot)",
		Long: `Brings up again every site and twin that was up on this host and was not taken down. Twins whose time was over meanwhile are destroyed.
A release that was on trial is watched again, and goes back if its time was over meanwhile.`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			err := a.resumeExpiries(c.Context())
			for _, m := range a.sitesUp() {
				err = errors.Join(err, a.resumeSite(c.Context(), m))
			}
			return err
		},
	}
}

// resumeExpiries destroys the twins whose time is over, and sees to it that others are destroyed in their time: what waited for that
// did not outlive the reboot.
func (a *app) resumeExpiries(ctx context.Context) error {
	var all error
	for _, r := range a.forgottenTwins(0) {
		if err := a.endForgotten(ctx, r); err != nil {
			printError(a.err, err)
			all = errors.Join(all, problem.New(problem.Failed, "twin %s is not ended in its time", r.key()).Try("orrery twin destroy %s", r.Options.Name))
		}
	}
	return all
}

// resumeSite brings up a site that was up.
func (a *app) resumeSite(ctx context.Context, m marker) error {
	b := a.atWork()
	b.siteDir, b.twin, b.force = m.Dir, m.Twin, true
	name := m.Site
	if m.Twin != "" {
		name += "." + m.Twin
	}
	fmt.Fprintf(a.out, "%s from %s\n", name, m.Dir)
	if err := b.resumeRestored(ctx, m); err != nil {
		printError(a.err, err)
		return problem.New(problem.Failed, "site %s was not brought up", name).At(filepath.Join(m.Dir, "site.toml"))
	}
	return nil
}

// watchTrial lets a process watch over a trial, whatever becomes of this one.
func (a *app) watchTrial(s *site.Site) error {
	args, err := a.sameSite("trial")
	if err != nil {
		return err
	}
	return a.later(later.Call{Name: trialName(s), Args: args})
}

// tellTrial says how a trial will end.
func (a *app) tellTrial(s *site.Site, trial *observe.Trial) {
	how := "stays with \"orrery confirm\", or if its health checks hold until then,"
	if trial.ByHand {
		how = "stays with \"orrery confirm\" only,"
	}
	fmt.Fprintf(a.out, "%s: release %s is on trial until %s: it %s and goes back to release %s otherwise.\n",
		s.Key(), site.ReleaseName(trial.Release), clock(trial.Until), how, at(trial.Back))
}
