package releaseverb

import (
	"context"

	"github.com/spf13/cobra"

	"orrery/internal/cli/verb"
	"orrery/internal/control/releases"
	"orrery/internal/site"
)

// Rollback returns the command `orrery rollback`.
func Rollback(call *verb.Call) *cobra.Command {
	c := &cobra.Command{
		Use:     "rollback [SELECTOR...]",
		Short:   "Return to the former release, without rebuilding anything",
		Example: "  orrery rollback",
		Long: `Returns to the release that was live before, in the same way as "orrery
switch". Without a selector, all nodes that have a former release return to it.
Data written to volumes since then is kept.`,
		RunE: call.WithSite(func(ctx context.Context, s *site.Site, selectors []string) error {
			made, err := releases.Rollback(ctx, call.Session, s, selectors)
			if err != nil {
				return err
			}
			printSwitched(call.Out, made)
			return nil
		}),
	}
	call.ProductionFlag(c)
	return c
}
