package releaseverb

import (
	"bytes"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"orrery/internal/cli/verb"
	"orrery/internal/control"
	proof "orrery/internal/control/ci"
	"orrery/internal/control/testrun"
	"orrery/internal/problem"
)

// CI returns the command `orrery ci`.
func CI(call *verb.Call) *cobra.Command {
	o := proof.Options{Timeout: 30 * time.Minute, Orrery: call.Session.Version}
	c := &cobra.Command{
		Use:   "ci [SITE]",
		Short: "Test a site or a release in a fresh twin, and write a report",
		Long: `Creates a fresh twin of a site, waits until it is healthy, runs the commands of
[test.*] inside its nodes in the order of the site file, and destroys the twin,
whatever happens. Name the site by its directory or, if it is up on this host,
by its name. Use it in nightly jobs and continuous integration.

The exit status is 0 if all tests passed and 11 if one failed.`,
		Example: "  orrery ci examples/toykat --release next --junit build/toykat.xml",
		Args:    cobra.MaximumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			if len(args) > 0 {
				o.Site = args[0]
			}
			p, err := proof.New(call.Session, newCIWatcher(call.Output), o)
			if err != nil {
				return err
			}
			err = p.Run(c.Context())
			if p.Report.Took == 0 { // the run was not started
				return err
			}
			if p.Kept {
				fmt.Fprintf(call.Err, "The twin was kept: orrery -C %s --twin %s status\n", p.Twin.Dir, p.Twin.Options.Name)
			}
			fmt.Fprintln(call.Out, p.Report.Summary())
			if err == nil && !p.Report.OK() {
				return problem.Status(problem.Unhealthy)
			}
			return err
		},
	}
	f := c.Flags()
	f.StringVar(&o.Release, "release", "",
		`test this release; "next": the highest (default: declared)`)
	f.StringVar(&o.JUnit, "junit", "", "write the report to this `file` as JUnit XML")
	f.StringArrayVar(&o.Only, "only", nil, "test only the nodes of this `selector` (repeatable)")
	f.BoolVar(&o.Keep, "keep", false, "keep the twin, to see what went wrong")
	f.DurationVar(&o.Timeout, "timeout", o.Timeout, "time limit of the run, not including the twin's destruction")
	return c
}

// A ciWatcher shows the progress of a run. Only results go to standard output. All other
// output is also stored for the report.
type ciWatcher struct {
	control.Watcher
	verb.Output
	kept *bytes.Buffer
}

func newCIWatcher(o verb.Output) ciWatcher {
	kept := &bytes.Buffer{}
	both := io.MultiWriter(o.Err, kept)
	return ciWatcher{verb.Watcher{Output: verb.Output{Out: both, Err: both}}, o, kept}
}

// TwinOutput returns the output about the twin.
func (w ciWatcher) TwinOutput() string { return w.kept.String() }

// Tested prints the result of a test.
func (w ciWatcher) Tested(result testrun.Result) { testrun.PrintResult(w.Out, result) }

// Swept reports a twin that is being destroyed.
func (w ciWatcher) Swept(twin string) {
	fmt.Fprintf(w.Err, "destroying twin %s, left by a run that was killed\n", twin)
}
