package cli

import (
	"github.com/spf13/cobra"

	"orrery/internal/lab/facts"
	"orrery/internal/lab/suspect"
)

func (a *app) labDoctorVerb() *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use:   "doctor",
		Short: "Check whether this host is fit for measuring, and how to fix what is not",
		Long:  "Reports what makes figures from this host suspect. None of it stops you from running an experiment; it becomes a label in the report.",
		Args:  cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			known, err := facts.Collect(c.Context(), facts.Options{Dir: a.Dirs.State})
			if err != nil {
				return err
			}
			findings := suspect.Host(known)
			if asJSON {
				return printJSON(a.out, findings)
			}
			return printFacts(a.out, findings)
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return c
}
