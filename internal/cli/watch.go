package cli

import (
	"github.com/spf13/cobra"
)

// trialVerb watches over a trial. It is begun by switch, by resume after a reboot, and by whoever finds that nobody does.
func (a *app) trialVerb() *cobra.Command {
	return &cobra.Command{
		Use: "trial", Hidden: true, Args: cobra.NoArgs,
		Short: "Watch over the release that is on trial until it is confirmed or goes back",
		RunE: func(c *cobra.Command, _ []string) error {
			s, err := a.Load()
			if err != nil {
				return err
			}
			end, err := a.WatchTrial(c.Context(), s)
			return a.tellEnd(s, end, err)
		},
	}
}
