package siteverb

import (
	"fmt"

	"github.com/spf13/cobra"

	"orrery/internal/cli/verb"
	"orrery/internal/control/draft"
)

// Role returns the command `orrery role`.
func Role(call *verb.Call) *cobra.Command {
	return verb.Group("role", "Write and fetch roles", roleNew(call), roleFetch(call))
}

func roleNew(call *verb.Call) *cobra.Command {
	return &cobra.Command{
		Use:   "new NAME",
		Short: "Write a role with comments to start from",
		Long: `Writes roles/NAME/role.toml in the site directory. Its comments propose what a
role may have; without them the role does nothing.`,
		Example: "  orrery role new web",
		Args:    cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			dir, err := call.Session.Directory()
			if err != nil {
				return err
			}
			path, err := draft.WriteRole(dir, args[0])
			if err != nil {
				return err
			}
			fmt.Fprintf(call.Out, "wrote %s\n\nGive it to nodes in site.toml: roles = [%q]\n", path, args[0])
			return nil
		},
	}
}
