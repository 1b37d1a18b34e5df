package cli

import (
	"github.com/spf13/cobra"
)

func (a *app) releaseVerb() *cobra.Command {
	c := &cobra.Command{
		Use: "release", Short: "List releases, show what is in them, and how they differ",
		Args: someVerb, RunE: func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(a.releaseList(), a.releaseShow(), a.releaseDiff(), a.releasePrune())
	return c
}
