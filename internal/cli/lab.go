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
	"orrery/internal/control/lab"
	"orrery/internal/lab/bundle"
)

func labVerb(a *app) *cobra.Command {
	c := group("lab", "Measure what virtualization costs on this host",
		labRunVerb(a), labListVerb(a), labReportVerb(a), labCompareVerb(a), labverb.History(a.session, a.out), labverb.Check(a.session, a.out), labDoctorVerb(a))
	c.Long = `Runs the same tests in several settings in turn: on the bare host, and in containers on each kind of network, with and without limits. It reports
what differs, by how much, and how far you can trust that. Each run makes a bundle: a directory with the raw samples and a report.`
	return c
}

func labListVerb(a *app) *cobra.Command {
	return withJSON(&cobra.Command{
		Use:   "ls [DIR]",
		Short: "List the bundles of this host",
		Args:  cobra.MaximumNArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			dir := lab.Bundles(a.session)
			if len(args) == 1 {
				dir = args[0]
			}
			heads, err := bundle.List(dir)
			if heads == nil {
				heads = []bundle.Head{}
			}
			if len(heads) == 0 && !reply.Wanted(a.out) {
				fmt.Fprintf(a.out, "No bundles in %s. orrery lab run makes one.\n", dir)
				return err
			}
			return errors.Join(table.List(a.out, heads, "BUNDLE\tBEGAN\tWHO\tROUNDS\tSTATE\tTITLE", func(h bundle.Head) []any {
				return []any{h.ID, table.Minute(h.Began), h.Who, max(0, h.Rounds-1), lab.State(h, filepath.Join(dir, h.ID)), h.Title}
			}), err)
		},
	}, "print JSON")
}

func labReportVerb(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "report BUNDLE",
		Short: "Rewrite the report of a bundle, and print the answer",
		Args:  cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			dir, err := lab.Find(a.session, args[0])
			if err != nil {
				return err
			}
			made, err := lab.WriteReport(dir)
			return errors.Join(err, printWritten(a.out, made))
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

func labCompareVerb(a *app) *cobra.Command {
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
			compared, err := lab.Compare(a.session, before, after)
			if err != nil {
				return err
			}
			if html != "" {
				if err := lab.WritePage(compared, html); err != nil {
					return err
				}
			}
			switch {
			case reply.Wanted(a.out):
				return compared.JSON(reply.Result(a.out))
			case markdown:
				return compared.Markdown(a.out)
			}
			err = compared.Text(a.out)
			if html != "" {
				fmt.Fprintf(a.out, "\n  %s\n", html)
			}
			return err
		},
	}
	c.Flags().BoolVar(&markdown, "markdown", false, "print Markdown")
	c.Flags().StringVar(&html, "html", "", "also write a page to that `file`")
	withJSON(c, "print JSON").MarkFlagsMutuallyExclusive("json", "markdown")
	return c
}

func labDoctorVerb(a *app) *cobra.Command {
	return withJSON(&cobra.Command{
		Use:   "doctor",
		Short: "Check whether this host is fit for measuring, and how to fix what is not",
		Long:  "Reports what makes figures from this host suspect. None of it stops you from running an experiment; it becomes a label in the report.",
		Args:  cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			findings, err := lab.Doctor(c.Context(), a.session)
			if err != nil {
				return err
			}
			return table.Facts(a.out, findings)
		},
	}, "print JSON")
}

// speadVerb is what the lab measures capture with.
func speadVerb(a *app) *cobra.Command {
	c := group("spead", "Send or receive SPEAD heaps over UDP", heaps.Send(a.in, a.out), heaps.Receive(a.in, a.out))
	c.Hidden = true
	return c
}
