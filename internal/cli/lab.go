package cli

import "github.com/spf13/cobra"

func (a *app) labVerb() *cobra.Command {
	c := &cobra.Command{
		Use:   "lab",
		Short: "Measure what virtualization costs on this host",
		Long: `Runs the same tests in several settings in turn: on the bare host, and in containers on each kind of network, with and without limits. It reports
what differs, by how much, and how far you can trust that. Each run makes a bundle: a directory with the raw samples and a report.`,
		Args: someVerb,
		RunE: func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(a.labRunVerb(), a.labListVerb(), a.labReportVerb(), a.labCompareVerb(), a.labCheckVerb(), a.labDoctorVerb())
	return c
}
