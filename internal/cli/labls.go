package cli

import (
	"errors"
	"fmt"
	"path/filepath"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"orrery/internal/cli/reply"
	"orrery/internal/control/lab"
	"orrery/internal/lab/bundle"
)

func (a *app) labListVerb() *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use:   "ls [DIR]",
		Short: "List the bundles of this host",
		Args:  cobra.MaximumNArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			dir := lab.Bundles(&a.Session)
			if len(args) == 1 {
				dir = args[0]
			}
			heads, err := bundle.List(dir)
			if asJSON {
				if heads == nil {
					heads = []bundle.Head{}
				}
				return errors.Join(reply.JSON(a.out, heads), err)
			}
			if len(heads) == 0 {
				fmt.Fprintf(a.out, "No bundles in %s. orrery lab run makes one.\n", dir)
				return err
			}
			t := tabwriter.NewWriter(a.out, 0, 0, 2, ' ', 0)
			fmt.Fprintln(t, "BUNDLE\tBEGAN\tWHO\tROUNDS\tSTATE\tTITLE")
			for _, h := range heads {
				fmt.Fprintf(t, "%s\t%s\t%s\t%d\t%s\t%s\n", h.ID, h.Began.Local().Format("2006-01-02 15:04"), h.Who, max(0, h.Rounds-1),
					lab.State(h, filepath.Join(dir, h.ID)), h.Title)
			}
			return errors.Join(t.Flush(), err)
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return c
}
