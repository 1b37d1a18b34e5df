package hostverb

import (
	"fmt"

	"github.com/spf13/cobra"

	"orrery/internal/cli/reply"
	"orrery/internal/cli/verb"
	"orrery/internal/control/roster"
)

func hostRemove(call *verb.Call) *cobra.Command {
	c := &cobra.Command{
		Use: "remove HOST", Short: "Take a host out of the site, on which no nodes are any more",
		Long: `Takes a host out of the site: networks and all that it keeps of the site are removed there, the program of Orrery too if no other site is there, and its lines go out of site.toml. It is refused while
nodes or volumes are on the host ("orrery host drain" moves nodes away), and if the host does not answer. Of one that is lost for good, take the lines out of site.toml yourself.`,
		Example: "  orrery host drain sv3 && orrery host remove sv3",
		Args:    cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			removed, err := roster.Remove(c.Context(), call.Session, args[0])
			if err != nil {
				return err
			}
			if err := reply.Answer(call.Out, removed, func() {
				fmt.Fprintf(call.Out, "%s has nothing of the site any more.\n", removed.Host)
				for _, left := range removed.Left {
					fmt.Fprintf(call.Out, "Left there: %s.\n", left)
				}
			}); err != nil {
				return err
			}
			return byHand(call.Out, removed.Written, "Take this out of site.toml:", removed.Block)
		},
	}
	return verb.WithJSON(c, "print JSON")
}
