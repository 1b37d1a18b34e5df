package hostverb

import (

	"github.com/spf13/cobra"

	"orrery/internal/control"
	"orrery/internal/control/here"
	"orrery/internal/control/lab"
	"orrery/internal/control/overdue"
)

// Inner returns the verbs that are begun by Orrery itself, and not by its users.
func Inner(s *control.Session) []*cobra.Command { return []*cobra.Command{helper(s)} }

// helper does on this machine what is asked from another. It is begun there, by ssh.
func helper(s *control.Session) *cobra.Command {
	return &cobra.Command{
		Use: here.Helper, Hidden: true, Args: cobra.NoArgs,
		Short: "Do what is asked along the standard streams, for somebody who reaches this host from another",
		RunE: func(c *cobra.Command, _ []string) error {
			overdue.WaitAgain(c.Context(), s)
			return here.This{Dirs: s.Dirs, Version: s.Version}.Help(c.Context(), lab.Bench{Session: s})
		},
	}
}
