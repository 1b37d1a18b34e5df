package cli

import (
	"github.com/spf13/cobra"

	"orrery/internal/cli/reply"
	"orrery/internal/control/lab"
)

func (a *app) labDoctorVerb() *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use:   "doctor",
		Short: "Check whether this host is fit for measuring, and how to fix what is not",
		Long:  "Reports what makes figures from this host suspect. None of it stops you from running an experiment; it becomes a label in the report.",
		Args:  cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			findings, err := lab.Doctor(c.Context(), &a.Session)
			if err != nil {
				return err
			}
			if asJSON {
				return reply.JSON(a.out, findings)
			}
			return printFacts(a.out, findings)
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return c
}
