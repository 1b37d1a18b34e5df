package cli

import (
	"errors"
	"fmt"
	"path/filepath"

	"github.com/spf13/cobra"

	"orrery/internal/control/lab"
)

func (a *app) labReportVerb() *cobra.Command {
	return &cobra.Command{
		Use:   "report BUNDLE",
		Short: "Rewrite the report of a bundle, and print the answer",
		Args:  cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			dir, err := lab.Find(&a.Session, args[0])
			if err != nil {
				return err
			}
			made, err := lab.WriteReport(dir)
			return errors.Join(err, a.tellWritten(made))
		},
	}
}

// tellWritten prints the answer of a report, if there is one, and where the rest of it is.
func (a *app) tellWritten(made *lab.Written) error {
	if made == nil {
		return nil
	}
	err := made.Report.Text(a.out)
	fmt.Fprintf(a.out, "\n  %s\n", filepath.Join(made.Dir, "report.html"))
	return err
}
