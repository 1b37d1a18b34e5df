package cli

import (
	"errors"
	"fmt"
	"io"
	"path/filepath"

	"github.com/spf13/cobra"

	"orrery/internal/cli/heaps"
	"orrery/internal/cli/labgoal"
	"orrery/internal/cli/labverb"
	"orrery/internal/cli/reply"
	"orrery/internal/cli/table"
	"orrery/internal/cli/verb"
	"orrery/internal/control/lab"
	"orrery/internal/lab/bundle"
)

func labVerb(call *verb.Call) *cobra.Command {
	c := verb.Group("lab", "Measure what virtualization costs on this host",
		labRunVerb(call), labListVerb(call), labReportVerb(call), labCompareVerb(call), labverb.History(call.Session, call.Out), labverb.Check(call.Session, call.Out), labDoctorVerb(call))
	c.Long = `Runs the same tests in several settings in turn: on the bare host, and in containers on each kind of network, with and without limits. It reports
what differs, by how much, and how far you can trust that. Each run makes a bundle: a directory with the raw samples and a report.`
	return c
}

func labListVerb(call *verb.Call) *cobra.Command {
	return verb.WithJSON(&cobra.Command{
		Use:   "ls [DIR]",
		Short: "List the bundles of this host",
		Args:  cobra.MaximumNArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			dir := lab.Bundles(call.Session)
			if len(args) == 1 {
				dir = args[0]
			}
			heads, err := bundle.List(dir)
			if heads == nil {
				heads = []bundle.Head{}
			}
			if len(heads) == 0 && !reply.Wanted(call.Out) {
				fmt.Fprintf(call.Out, "No bundles in %s. orrery lab run makes one.\n", dir)
				return err
			}
			return errors.Join(table.List(call.Out, heads, "BUNDLE\tBEGAN\tWHO\tROUNDS\tSTATE\tTITLE", func(h bundle.Head) []any {
				return []any{h.ID, table.Minute(h.Began), h.Who, max(0, h.Rounds-1), lab.State(h, filepath.Join(dir, h.ID)), h.Title}
			}), err)
		},
	}, "print JSON")
}

func labReportVerb(call *verb.Call) *cobra.Command {
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

func labCompareVerb(call *verb.Call) *cobra.Command {
	var markdown bool
	var html string
	c := &cobra.Command{
		Use:   "compare BEFORE… -- AFTER…",
		Short: "Compare runs before and after a change",
		Long: `Compares bundles from before and after a change, for instance a kernel upgrade: which figures differ, which of their
ratios to the bare host differ, and what else is different between the hosts. A run has luck of its own: with one
bundle on each side, all that can be said is that these two runs differ. Make three of each (orrery lab run --repeat 3).`,
		Example: "  orrery lab compare --html compared.html A1 A2 A3 -- B1 B2 B3\n  orrery lab compare default-20261101-120000 default-20261122-120000",
		Args:    cobra.MinimumNArgs(2),
		RunE: func(c *cobra.Command, args []string) error {
			before, after, err := labgoal.Sides(c, args)
			if err != nil {
				return err
			}
			compared, err := lab.Compare(call.Session, before, after)
			if err != nil {
				return err
			}
			if html != "" {
				if err := lab.WritePage(compared, html); err != nil {
					return err
				}
			}
			switch {
			case reply.Wanted(call.Out):
				return compared.JSON(reply.Result(call.Out))
			case markdown:
				return compared.Markdown(call.Out)
			}
			err = compared.Text(call.Out)
			if html != "" {
				fmt.Fprintf(call.Out, "\n  %s\n", html)
			}
			return err
		},
	}
	c.Flags().BoolVar(&markdown, "markdown", false, "print Markdown")
	c.Flags().StringVar(&html, "html", "", "also write a page to that `file`")
	verb.WithJSON(c, "print JSON").MarkFlagsMutuallyExclusive("json", "markdown")
	return c
}

func labDoctorVerb(call *verb.Call) *cobra.Command {
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

// speadVerb is what the lab measures capture with.
func speadVerb(call *verb.Call) *cobra.Command {
	c := verb.Group("spead", "Send or receive SPEAD heaps over UDP", heaps.Send(call.In, call.Out), heaps.Receive(call.In, call.Out))
	c.Hidden = true
	return c
}
