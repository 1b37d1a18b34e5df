package cli

import (
	"github.com/spf13/cobra"
)

func (a *app) rollbackVerb() *cobra.Command {
	c := &cobra.Command{
		Use:   "rollback [SELECTOR...]",
		Short: "Return to the former release in one switch; nothing is rebuilt",
		Long: `Returns to the release that was live before, in one switch as "orrery switch" does it. Without a selector, all nodes go back that
have a former release. Data that was written meanwhile to volumes stays there.`,
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
