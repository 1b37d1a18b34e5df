package cli

import (
	"context"
	"errors"
	"fmt"

	"orrery/internal/control/register"

	"github.com/spf13/cobra"
)

func (a *app) resumeVerb() *cobra.Command {
	return &cobra.Command{
		Use:   "resume",
		Short: "Bring every site up again that was up on this host (after a reboot)",
		Long: `Brings up again every site and twin that was up on this host and was not taken down. Twins that have expired meanwhile are destroyed.
A release that was on trial is watched again; if its time is over, the nodes return to the former release.`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			err := a.ResumeExpiries(c.Context())
			for _, m := range a.SitesUp() {
				err = errors.Join(err, a.resumeSite(c.Context(), m))
			}
			return err
		},
	}
}

// resumeSite brings up a site that was up.
func (a *app) resumeSite(ctx context.Context, m register.Marker) error {
	fmt.Fprintf(a.out, "%s from %s\n", m.Key(), m.Dir)
	s, result, err := a.ResumeSite(ctx, m)
	if err != nil {
		return err
	}
	return a.tellUp(ctx, s, nil, result)
}
