package cli

import (
	"github.com/spf13/cobra"

	"orrery/internal/hook"
)

// hookVerb tells the hooks of a site what waits to be told. It is begun by whoever has something to tell, who does not wait for it.
func (a *app) hookVerb() *cobra.Command {
	return &cobra.Command{
		Use: "hook SITE", Hidden: true, Args: cobra.ExactArgs(1),
		Short: "Tell the hooks of a site what waits to be told",
		RunE: func(c *cobra.Command, args []string) error {
			if err := a.Allowed(); err != nil {
				return err
			}
			return hook.Deliver(c.Context(), a.Dirs, args[0])
		},
	}
}
