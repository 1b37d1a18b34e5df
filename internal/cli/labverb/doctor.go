package labverb

import (
	"github.com/spf13/cobra"

	"orrery/internal/cli/table"
	"orrery/internal/cli/verb"
	"orrery/internal/control/lab"
)

func doctor(call *verb.Call) *cobra.Command {
	return verb.WithJSON(&cobra.Command{
		Use:   "doctor",
		Short: "Check whether this host is fit for measuring, and how to fix what is not",
		Long:  "Reports what makes figures from this host suspect. None of it stops you from running an experiment; it becomes a label in the report.",
		Args:  cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			findings, err := lab.Doctor(c.Context(), call.Session)
			if err != nil {
				return err
			}
			return table.Facts(call.Out, findings)
		},
	}, "print JSON")
}
