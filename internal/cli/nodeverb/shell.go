package nodeverb

import (
	"context"

	"github.com/spf13/cobra"

	"orrery/internal/cli/screen"
	"orrery/internal/cli/verb"
	"orrery/internal/control"
	"orrery/internal/control/way"
	"orrery/internal/site"
)

// Shell returns the command `orrery shell`.
func Shell(call *verb.Call) *cobra.Command {
	var user string
	c := &cobra.Command{
		Use:   "shell NODE [-- COMMAND...]",
		Short: "Open a terminal in a node, or run one command there",
		Example: `  orrery shell portal
  orrery shell portal -- systemctl status`,
		Args: cobra.MinimumNArgs(1),
		RunE: call.WithRunningHosts(func(ctx context.Context, s *site.Site, args []string) error {
			if _, err := control.DeclaredNode(s, args[0]); err != nil {
				return err
			}
			in, err := way.Runner(ctx, call.Session, s, args[0])
			if err != nil {
				return err
			}
			command := screen.Command(call.In, call.Out, call.Err, args[1:])
			command.User = user
			if len(command.Args) == 0 {
				command.Args = []string{"/bin/sh", "-c", "cd; exec $(command -v bash || echo sh) -l"}
			}
			return screen.OnlyExitStatus(control.JournalIfMember(call.Session, s, func() error { return in.Run(ctx, command) }))
		}),
	}
	c.Flags().StringVarP(&user, "user", "u", "", "run as this `user` in the node")
	call.ReleaseFlag(c)
	return c
}
