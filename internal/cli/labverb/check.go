package labverb

import (
	"fmt"

	"github.com/spf13/cobra"

	"orrery/internal/cli/verb"
	"orrery/internal/control/lab"
	"orrery/internal/phrase"
)

// check is `lab check`.
func check(call *verb.Call) *cobra.Command {
	return &cobra.Command{
		Use:   "check BUNDLE",
		Short: "Recompute every figure of a report from the raw samples",
		Long:  "Recomputes every figure of a bundle's report from its raw samples. The exit status is 1 if a figure differs or the bundle is damaged.",
		Args:  cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			dir, err := lab.Find(call.Session, args[0])
			if err != nil {
				return err
			}
			c, err := lab.Check(dir)
			if c != nil {
				for _, d := range c.Differences {
					fmt.Fprintln(call.Out, d)
				}
			}
			if err != nil {
				return err
			}
			fmt.Fprintf(call.Out, "%s: %s computed again, all the same.\n", dir, phrase.Count(c.Figures, "figure"))
			return nil
		},
	}
}
