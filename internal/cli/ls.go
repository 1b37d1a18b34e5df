package cli

import (
	"cmp"
	"fmt"
	"text/tabwriter"

	"orrery/internal/cli/reply"

	"github.com/spf13/cobra"
)

func (a *app) lsVerb() *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use: "ls", Short: "List the sites on this host, and the directories that they came from", Args: cobra.NoArgs,
		Long: `Lists the sites and twins on this host, up or down, with the directory that each came from. You need no site directory for this.
"orrery down --name SITE" takes down a site whose directory is gone.`,
		RunE: func(c *cobra.Command, _ []string) error {
			if err := a.Allowed(); err != nil {
				return err
			}
			rows, err := a.Sites(c.Context())
			if err != nil {
				return err
			}
			if asJSON {
				return reply.JSON(a.out, rows)
			}
			t := tabwriter.NewWriter(a.out, 0, 0, 2, ' ', 0)
			fmt.Fprintln(t, "SITE\tSTATE\tNODES\tDIRECTORY")
			for _, r := range rows {
				dir := cmp.Or(r.Dir, "-")
				if r.Gone {
					dir += " (gone)"
				}
				fmt.Fprintf(t, "%s\t%s\t%d of %d run\t%s\n", r.Key(), r.State(), r.Running, r.Nodes, dir)
			}
			return t.Flush()
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return c
}
