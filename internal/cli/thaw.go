package cli

import (
	"github.com/spf13/cobra"

	"orrery/internal/control/guard"
)

func (a *app) thawVerb() *cobra.Command {
	return &cobra.Command{
		Use: "thaw ENGINE/SITE/ID/NAME...", Hidden: true, Args: cobra.MinimumNArgs(1),
		Short: "Wait until the process that froze these nodes has ended, and let them go on if it did not",
		RunE:  func(c *cobra.Command, nodes []string) error { return guard.Thaw(c.Context(), a.Dirs, a.in, nodes) },
	}
}
