package hostverb

import (
	"cmp"
	"fmt"

	"github.com/spf13/cobra"

	"orrery/internal/cli/table"
	"orrery/internal/cli/verb"
	"orrery/internal/control/sites"
)

// Ls returns the command `orrery ls`.
func Ls(call *verb.Call) *cobra.Command {
	return verb.WithJSON(&cobra.Command{
		Use: "ls", Short: "List the sites on this host and their directories",
		Example: "  orrery ls",
		Args:    cobra.NoArgs,
		Long: `Lists the sites and twins on this host, up or down, with the directory of each.
You need no site directory for this. "orrery down --name SITE" takes down a
site whose directory is gone.`,
		RunE: call.AsRoot(func(c *cobra.Command, _ []string) error {
			all, err := sites.All(c.Context(), call.Session)
			if err != nil {
				return err
			}
			return table.List(call.Out, all, "SITE\tSTATE\tNODES\tDIRECTORY", func(r sites.State) []any {
				dir := cmp.Or(r.Dir, "-")
				if r.Gone {
					dir += " (gone)"
				}
				return []any{r.Key(), r.Text(), fmt.Sprintf("%d of %d run", r.Running, r.Nodes), dir}
			})
		}),
	}, "print JSON")
}
