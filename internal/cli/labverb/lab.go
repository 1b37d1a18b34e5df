// Package labverb has the verbs of `orrery lab`, which measure the cost of virtualization. It also
// has a sender and a receiver of SPEAD heaps, by which the lab measures capture.
package labverb

import (
	"errors"
	"fmt"
	"io"
	"path/filepath"

	"github.com/spf13/cobra"

	"orrery/internal/apply/remote"
	"orrery/internal/cli/reply"
	"orrery/internal/cli/table"
	"orrery/internal/cli/verb"
	"orrery/internal/control"
	"orrery/internal/control/lab"
	"orrery/internal/lab/bundle"
	"orrery/internal/text/humanize"
)

// Lab is what only orrery-lab can do.
type Lab struct{}

// Verbs returns the verbs that measure.
func (Lab) Verbs(call *verb.Call) []*cobra.Command {
	return []*cobra.Command{newLab(call), newSpead(call)}
}

// Runner runs the experiments that another host requests.
func (Lab) Runner(session *control.Session) remote.ExperimentRunner {
	return lab.Runner{Session: session}
}

// newLab returns the command `orrery lab`.
func newLab(call *verb.Call) *cobra.Command {
	c := verb.Group("lab", "Measure what virtualization costs on this host",
		run(call), list(call), report(call), compare(call), history(call), check(call), doctor(call),
		prove(call), newLoad(call))
	c.Long = `Runs the same tests in several settings in turn: on the bare host, and in
containers on each kind of network, with and without limits. It reports what
differs, by how much, and how far you can trust that. Each run makes a bundle:
a directory with the raw samples and a report.`
	return c
}

func list(call *verb.Call) *cobra.Command {
	return verb.WithJSON(&cobra.Command{
		Use:     "ls [DIR]",
		Short:   "List the bundles of this host",
		Example: "  orrery lab ls",
		Args:    cobra.MaximumNArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			dir := lab.Bundles(call.Session)
			if len(args) == 1 {
				dir = args[0]
			}
			heads, err := bundle.List(dir)
			if heads == nil {
				heads = []bundle.Manifest{}
			}
			if len(heads) == 0 && !reply.IsJSON(call.Out) {
				fmt.Fprintf(call.Out, "No bundles in %s. orrery lab run makes one.\n", dir)
				return err
			}
			return errors.Join(table.List(call.Out, heads, "BUNDLE\tBEGAN\tWHO\tROUNDS\tSTATE\tTITLE",
				func(h bundle.Manifest) []any {
					return []any{h.ID, table.Minute(h.Began), h.Who, max(0, h.Rounds-1), lab.State(h, filepath.Join(dir, h.ID)),
						h.Title}
				}), err)
		},
	}, "print JSON")
}

func report(call *verb.Call) *cobra.Command {
	return &cobra.Command{
		Use:     "report BUNDLE",
		Short:   "Rewrite the report of a bundle, and print its summary",
		Example: "  orrery lab report build/lab/2026-11-28",
		Args:    cobra.ExactArgs(1),
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

// printWritten prints the summary of a report, if there is one, and the path of the rest.
func printWritten(out io.Writer, made *lab.StoredReport) error {
	if made == nil {
		return nil
	}
	err := made.Report.Text(out)
	fmt.Fprintf(out, "\n  %s\n", filepath.Join(made.Dir, "report.html"))
	return err
}

// check returns the command `lab check`.
func check(call *verb.Call) *cobra.Command {
	return &cobra.Command{
		Use:     "check BUNDLE",
		Short:   "Recompute every figure of a report from the raw samples",
		Example: "  orrery lab check build/lab/2026-11-28",
		Long:    "Recomputes every figure of a bundle's report from its raw samples. The exit\nstatus is 1 if a figure differs or the bundle is damaged.",
		Args:    cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			dir, err := lab.Find(call.Session, args[0])
			if err != nil {
				return err
			}
			c, err := lab.Check(dir)
			if c != nil {
				for _, d := range c.Differences {
					fmt.Fprintln(call.Out, d)
				}
			}
			if err != nil {
				return err
			}
			fmt.Fprintf(call.Out, "%s: %s recomputed, none differs.\n", dir, humanize.Plural(c.Figures, "figure"))
			return nil
		},
	}
}

func doctor(call *verb.Call) *cobra.Command {
	return verb.WithJSON(&cobra.Command{
		Use:     "doctor",
		Short:   "Check whether this host is fit for measuring, and how to fix it",
		Example: "  orrery lab doctor",
		Long:    "Reports what makes figures from this host suspect. It does not prevent an\nexperiment, but is noted in its report.",
		Args:    cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			findings, err := lab.Doctor(c.Context(), call.Session)
			if err != nil {
				return err
			}
			return table.Facts(call.Out, findings)
		},
	}, "print JSON")
}
