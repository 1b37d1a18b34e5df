package hostverb

import (
	"fmt"

	"github.com/spf13/cobra"

	"orrery/internal/cli/verb"
	"orrery/internal/control"
	"orrery/internal/control/sites"
)

// Forget returns the command `orrery forget`.
func Forget(call *verb.Call) *cobra.Command {
	c := &cobra.Command{
		Use:   "forget SITE",
		Short: "Delete what this host keeps of a site that is down",
		Long: `Deletes what "orrery down" leaves of a site: SSH host keys, generated secrets,
kept releases, logs and the journal. It always asks for the site's name, and
needs no site directory. It refuses a site that is up, or that has volumes,
snapshots or twins. Other hosts of the site keep theirs.`,
		Example: "  orrery forget toykat",
		Args:    cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			if err := sites.Forget(c.Context(), call.Session, args[0]); err != nil {
				return err
			}
			fmt.Fprintf(call.Out, "%s: forgotten on this host.\n", args[0])
			return nil
		},
	}
	call.AgreeFlag(c, control.Forget, "the site's `name`, to delete without asking")
	return c
}
