package siteverb

import (
	"context"
	"fmt"
	"path/filepath"

	"github.com/spf13/cobra"

	"orrery/internal/cli/reply"
	"orrery/internal/cli/verb"
	"orrery/internal/control/sshconfig"
	"orrery/internal/site"
	"orrery/internal/site/inventory"
)

// SSHConfig returns the command `orrery ssh-config`.
func SSHConfig(call *verb.Call) *cobra.Command {
	var add, remove bool
	c := &cobra.Command{
		Use:   "ssh-config",
		Short: "Print an ssh configuration with every node and its host key",
		Long: `Prints an ssh configuration with every node and its host key.

With --install, it writes the configuration to ~/.ssh/orrery.d/SITE.conf, with
the host keys beside it, and includes it by one line in ~/.ssh/config. Nodes are
then reached as NODE.SITE or by address. Run it again after adding nodes. Called
by sudo, it installs the configuration for the user who called, because only
root can read the host keys.`,
		Example: "  orrery ssh-config > ~/.ssh/karoo.conf && ssh -F ~/.ssh/karoo.conf portal\n" +
			"  sudo orrery ssh-config --install && ssh portal.karoo",
		Args: cobra.NoArgs,
		RunE: call.WithSite(func(_ context.Context, s *site.Site, _ []string) error {
			known := filepath.Join(call.Session.Dirs.Keys(s.Key()), "known_hosts")
			switch {
			case add:
				done, err := sshconfig.Install(s, known)
				if err != nil {
					return err
				}
				return reply.Answer(call.Out, done, func() { printInstalled(call, s, done) })
			case remove:
				done, err := sshconfig.Uninstall(s.Name)
				if err != nil {
					return err
				}
				return reply.Answer(call.Out, done, func() { fmt.Fprintf(call.Out, "removed %s\n", done.File) })
			}
			_, err := call.Out.Write(inventory.SSHConfig(s, known))
			return err
		}),
	}
	c.Flags().BoolVar(&add, "install", false, "write it to a file that ~/.ssh/config includes")
	c.Flags().BoolVar(&remove, "uninstall", false, "remove what --install has written")
	c.MarkFlagsMutuallyExclusive("install", "uninstall")
	return c
}

func printInstalled(call *verb.Call, s *site.Site, done *sshconfig.Installed) {
	fmt.Fprintf(call.Out, "wrote %s, which %s includes\n", done.File, done.Config)
	if !done.Keys {
		fmt.Fprintln(call.Out, "The nodes have no host keys yet: run this again after orrery up.")
	} else if len(s.Nodes) > 0 {
		fmt.Fprintf(call.Out, "\n  ssh %s.%s\n", s.Nodes[0].Name, s.Name)
	}
}
