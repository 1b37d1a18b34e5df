package cli

import (
	"fmt"

	"github.com/spf13/cobra"

	"orrery/internal/observe"
	"orrery/internal/site"
)

func (a *app) confirmVerb() *cobra.Command {
	return &cobra.Command{
		Use:   "confirm",
		Short: "Keep the release that is on trial",
		Long: `Ends the trial that "orrery switch --confirm-within" began: the release stays live.
The exit status is 0 if so, and 13 if the nodes have already returned to the former release.`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			s, err := a.Load()
			if err != nil {
				return err
			}
			end, err := a.Confirm(c.Context(), s, "by hand")
			return a.tellEnd(s, end, err)
		},
	}
}

// tellEnd says that a trial has ended well, if so.
func (a *app) tellEnd(s *site.Site, end *observe.TrialEnd, err error) error {
	if err == nil {
		fmt.Fprintf(a.out, "%s: release %d is confirmed (%s).\n", s.Key(), end.Release, end.Why)
	}
	return err
}
