package labverb

import (
	"errors"
	"fmt"
	"io"
	"path/filepath"

	"github.com/spf13/cobra"

	"orrery/internal/cli/verb"
	"orrery/internal/control/lab"
)

func report(call *verb.Call) *cobra.Command {
	return &cobra.Command{
		Use:   "report BUNDLE",
		Short: "Rewrite the report of a bundle, and print the answer",
		Args:  cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			dir, err := lab.Find(call.Session, args[0])
			if err != nil {
				return err
			}
			made, err := lab.WriteReport(dir)
			return errors.Join(err, printWritten(call.Out, made))
		},
	}
}

// printWritten prints the answer of a report, if there is one, and where the rest of it is.
func printWritten(out io.Writer, made *lab.Written) error {
	if made == nil {
		return nil
	}
	err := made.Report.Text(out)
	fmt.Fprintf(out, "\n  %s\n", filepath.Join(made.Dir, "report.html"))
	return err
}
