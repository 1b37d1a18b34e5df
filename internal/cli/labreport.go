package cli

import (
	"fmt"
	"path/filepath"

	"github.com/spf13/cobra"

	"orrery/internal/lab/bundle"
	"orrery/internal/lab/report"
)

func (a *app) labReportVerb() *cobra.Command {
	return &cobra.Command{
		Use:   "report BUNDLE",
		Short: "Rewrite the report of a bundle, and print the answer",
		Args:  cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			dir, err := a.bundleDir(args[0])
			if err != nil {
				return err
			}
			return a.writeReport(dir)
		},
	}
}

// writeReport writes the report of a bundle and prints the answer.
func (a *app) writeReport(dir string) error {
	c, err := bundle.Read(dir)
	if err != nil {
		return err
	}
	r := report.Analyse(c)
	if err := r.Write(dir); err != nil {
		return err
	}
	r.Text(a.out)
	fmt.Fprintf(a.out, "\n  %s\n", filepath.Join(dir, "report.html"))
	return c.Damaged.OrNil()
}
