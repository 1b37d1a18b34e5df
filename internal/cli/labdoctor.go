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
		Short: "Whether this host is fit to measure on, and the cure for what is not",
		Long:  "Tells what of this host makes figures suspect. Nothing of it keeps an experiment from being run: it becomes a label in the report.",
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
