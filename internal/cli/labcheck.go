package cli

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"orrery/internal/lab/report"
	"orrery/internal/phrase"
	"orrery/internal/problem"
)

func (a *app) labCheckVerb() *cobra.Command {
	return &cobra.Command{
		Use:   "check BUNDLE",
		Short: "Recompute every figure of a report from the raw samples",
		Long:  "Recomputes every figure of a bundle's report from its raw samples. The exit status is 1 if a figure differs or the bundle is damaged.",
		Args:  cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			dir, err := a.bundleDir(args[0])
			if err != nil {
				return err
			}
			c, err := report.Check(dir)
			if err != nil {
				return err
			}
			for _, d := range c.Differences {
				fmt.Fprintln(a.out, d)
			}
			if len(c.Differences) > 0 {
				err = problem.New(problem.Failed, "%s differ from what the samples give", phrase.Count(len(c.Differences), "figure")).At(dir).
					Try("orrery lab report %s writes the report again", dir)
			}
			if err := errors.Join(err, c.Damaged.OrNil()); err != nil {
				return err
			}
			fmt.Fprintf(a.out, "%s: %s computed again, all the same.\n", dir, phrase.Count(c.Figures, "figure"))
			return nil
		},
	}
}
