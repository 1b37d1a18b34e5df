package cli

import (
	"github.com/spf13/cobra"
)

func (a *app) rollbackVerb() *cobra.Command {
	c := &cobra.Command{
		Use:   "rollback [SELECTOR...]",
		Short: "Return to the former release, without rebuilding anything",
		Long: `Returns to the release that was live before, in the same way as "orrery switch". Without a selector, all nodes that have a former release
return to it. Data written to volumes meanwhile stays there.`,
		RunE: func(c *cobra.Command, args []string) error {
			s, err := a.Load()
			if err != nil {
				return err
			}
			made, err := a.Rollback(c.Context(), s, args)
			if err != nil {
				return err
			}
			a.tellSwitched(made)
			return nil
		},
	}
	a.productionFlag(c)
	return c
}
