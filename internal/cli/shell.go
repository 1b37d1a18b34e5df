package cli

import (
	"context"
	"errors"

	"github.com/spf13/cobra"

	"orrery/internal/cli/screen"
	"orrery/internal/control"
	"orrery/internal/control/way"
	"orrery/internal/host"
	"orrery/internal/problem"
	"orrery/internal/site"
)

func (a *app) shellVerb() *cobra.Command {
	var user string
	c := &cobra.Command{
		Use:   "shell NODE [-- COMMAND...]",
		Short: "Open a terminal in a node, or run one command there",
		Args:  cobra.MinimumNArgs(1),
		RunE: a.onHosts(func(ctx context.Context, s *site.Site, args []string) error {
			if _, err := control.Declared(s, args[0]); err != nil {
				return err
			}
			in, err := way.Into(ctx, &a.Session, s, args[0])
			if err != nil {
				return err
			}
			command := host.Command{Args: args[1:], User: user, TTY: host.IsTerminal(a.in) && host.IsTerminal(screen.Unshown(a.out))}
			if !command.TTY {
				command.Stdin, command.Stdout, command.Stderr = a.in, a.out, a.err
			}
			if len(command.Args) == 0 {
				command.Args = []string{"/bin/sh", "-c", "cd; exec $(command -v bash || echo sh) -l"}
			}
			err = a.Noted(s, func() error { return in.Run(ctx, command) })
			var run *host.RunError
			if errors.As(err, &run) && run.Status > 0 {
				return problem.Status(run.Status) // the command has said itself what was wrong
			}
			return err
		}),
	}
	c.Flags().StringVarP(&user, "user", "u", "", "run as this `user` in the node")
	a.releaseFlag(c)
	return c
}
