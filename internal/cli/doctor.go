package cli

import (
	"fmt"
	"io"
	"text/tabwriter"

	"github.com/fatih/color"
	"github.com/spf13/cobra"

	"orrery/internal/host"
	"orrery/internal/problem"
)

func (a *app) doctorVerb() *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use:   "doctor",
		Short: "What this machine can do, and the cure for what it cannot",
		Long:  "Tries what nodes need on this machine. The exit status is 4 if something needed is missing.",
		Args:  cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			facts := host.LookAt(a.dirs.State)
			if asJSON {
				return printJSON(a.out, facts)
			}
			if err := printFacts(a.out, facts); err != nil {
				return err
			}
			if missing := facts.Lacking(host.Needed); len(missing) > 0 {
				fmt.Fprintf(a.out, "\n%d things that nodes need are missing.\n", len(missing))
				return problem.Status(problem.Unable)
			}
			return nil
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return c
}

// printFacts prints what was found of a host, with the cure for what is not well.
func printFacts(w io.Writer, facts host.Facts) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, f := range facts {
		mark := color.GreenString("ok")
		if !f.OK {
			mark = color.YellowString("--")
			if f.Level == host.Needed {
				mark = color.RedString("NO")
			}
		}
		fmt.Fprintf(t, "%s\t%s\t%s\n", mark, f.Name, f.Value)
		if !f.OK && f.Fix != "" {
			fmt.Fprintf(t, "\t\t  cure: %s\n", f.Fix)
		}
	}
	return t.Flush()
}
