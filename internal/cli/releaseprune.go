package cli

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"orrery/internal/control/releases"
	"orrery/internal/phrase"
)

func (a *app) releasePrune() *cobra.Command {
	keep := 2
	c := &cobra.Command{
		Use: "prune", Short: "Remove old releases", Args: cobra.NoArgs,
		Long: `Removes all releases but those that are live, to which a rollback or the end of a trial returns, the one that was confirmed last, and
the newest of the others.`,
		RunE: func(c *cobra.Command, _ []string) error {
			s, err := a.Load()
			if err != nil {
				return err
			}
			gone, err := releases.Prune(c.Context(), &a.Session, s, keep)
			if err != nil {
				return err
			}
			if gone == nil {
				fmt.Fprintf(a.out, "%s: nothing to prune.\n", s.Key())
				return nil
			}
			fmt.Fprintf(a.out, "%s: %s of releases removed (%s).\n", s.Key(), phrase.Count(gone.Nodes, "node"), strings.Join(numbers(gone.Releases), ", "))
			return nil
		},
	}
	a.productionFlag(c)
	c.Flags().IntVar(&keep, "keep", keep, "how many releases to keep that could be removed, newest first")
	return c
}
