package releaseverb

import (
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"orrery/internal/cli/verb"
	"orrery/internal/control/releases"
	"orrery/internal/observe"
	"orrery/internal/site"
)

// Confirm returns the command `orrery confirm`.
func Confirm(call *verb.Call) *cobra.Command {
	return &cobra.Command{
		Use:     "confirm",
		Short:   "Keep the release that is on trial",
		Example: "  orrery confirm",
		Long: `Ends the trial that "orrery switch --confirm-within" began: the release stays
live.

The exit status is 0 if so, and 13 if the nodes have already returned to the
former release.`,
		Args: cobra.NoArgs,
		RunE: call.WithSite(func(ctx context.Context, s *site.Site, _ []string) error {
			end, err := releases.Confirm(ctx, call.Session, s, "by hand")
			return printEnd(call.Out, s, end, err)
		}),
	}
}

// printEnd prints that a release is confirmed, if err is nil.
func printEnd(out io.Writer, s *site.Site, end *observe.TrialEnd, err error) error {
	if err == nil {
		fmt.Fprintf(out, "%s: release %d is confirmed (%s).\n", s.Key(), end.Release, end.Why)
	}
	return err
}
