package siteverb

import (
	"context"
	"path/filepath"

	"github.com/spf13/cobra"

	"orrery/internal/cli/verb"
	"orrery/internal/site"
	"orrery/internal/site/inventory"
)

// SSHConfig returns the command `orrery ssh-config`.
func SSHConfig(call *verb.Call) *cobra.Command {
	return &cobra.Command{
		Use:     "ssh-config",
		Short:   "Print an ssh configuration with every node and its host key",
		Example: "  orrery ssh-config > ~/.ssh/karoo.conf && ssh -F ~/.ssh/karoo.conf portal",
		Args:    cobra.NoArgs,
		RunE: call.WithSite(func(_ context.Context, s *site.Site, _ []string) error {
			_, err := call.Out.Write(inventory.SSHConfig(s, filepath.Join(call.Session.Dirs.Keys(s.Key()), "known_hosts")))
			return err
		}),
	}
}
