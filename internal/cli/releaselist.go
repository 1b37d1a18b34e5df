package cli

import (
	"cmp"
	"fmt"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"orrery/internal/cli/reply"
	"orrery/internal/control/releases"
	"orrery/internal/site"
)

func (a *app) releaseList() *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use: "ls", Short: "List the releases", Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			s, err := a.Load()
			if err != nil {
				return err
			}
			all, err := releases.List(c.Context(), &a.Session, s)
			if err != nil {
				return err
			}
			if asJSON {
				return reply.JSON(a.out, all)
			}
			t := tabwriter.NewWriter(a.out, 0, 0, 2, ' ', 0)
			fmt.Fprintln(t, "RELEASE\tSTATE\tLIVE\tQUARANTINE\tSTAGED\tBY\tNOTES")
			for _, i := range all {
				staged := "-"
				if !i.Staged.IsZero() {
					staged = i.Staged.Local().Format("2006-01-02 15:04")
				}
				fmt.Fprintf(t, "%s\t%s\t%d\t%d\t%s\t%s\t%s\n", site.ReleaseName(i.Number), i.State(), len(i.Live), len(i.Quarantine), staged, cmp.Or(i.Who, "-"), i.Notes)
			}
			if err := t.Flush(); err != nil {
				return err
			}
			return a.UnderWay(s)
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return c
}
