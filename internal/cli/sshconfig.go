package cli

import (
	"path/filepath"

	"github.com/spf13/cobra"

	"orrery/internal/site/inventory"
)

func (a *app) sshConfigVerb() *cobra.Command {
	return &cobra.Command{
		Use:     "ssh-config",
		Short:   "Print an ssh configuration with every node and its host key",
		Example: "  orrery ssh-config > ~/.ssh/karoo.conf && ssh -F ~/.ssh/karoo.conf portal",
		Args:    cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			s, err := a.Load()
			if err != nil {
				return err
			}
			known := filepath.Join(a.Dirs.Keys(s.Key()), "known_hosts")
			_, err = a.out.Write(inventory.SSHConfig(s, known))
			return err
		},
	}
}
