package hostverb

import (
	"context"

	"github.com/spf13/cobra"

	"orrery/internal/control"
	"orrery/internal/control/here"
	"orrery/internal/control/lab"
	"orrery/internal/control/overdue"
)

// Inner returns the verbs that are begun by Orrery itself, and not by its users.
func Inner(s *control.Session) []*cobra.Command { return []*cobra.Command{helper(s), keeper()} }

// helper does on this machine what is asked from another. It is begun there, by ssh.
func helper(s *control.Session) *cobra.Command {
	return &cobra.Command{
		Use: here.Helper, Hidden: true, Args: cobra.NoArgs,
		Short: "Do what is asked along the standard streams, for somebody who reaches this host from another",
		RunE: func(c *cobra.Command, _ []string) error {
			return here.This{Dirs: s.Dirs, Version: s.Version}.Help(c.Context(), lab.Bench{Session: s}, func(ctx context.Context) { overdue.WaitAgain(ctx, s) })
		},
	}
}

// keeper keeps connections to hosts for the next run. It is begun by the one before.
func keeper() *cobra.Command {
	return &cobra.Command{
		Use: here.Keeper + " DIRECTORY", Hidden: true, Args: cobra.ExactArgs(1),
		Short: "Keep connections to hosts for a while, for the next run",
		RunE:  func(c *cobra.Command, args []string) error { return here.Keep(c.Context(), args[0]) },
	}
}
