package labverb

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"orrery/internal/cli/reply"
	"orrery/internal/cli/verb"
	"orrery/internal/control/lab"
	provelab "orrery/internal/lab/prove"
	"orrery/internal/problem"
	"orrery/internal/site"
)

func prove(call *verb.Call) *cobra.Command {
	o := lab.ProveOptions{Rounds: 3, Seconds: 3}
	html := ""
	c := &cobra.Command{
		Use:   "prove [SELECTOR...]",
		Short: "Load nodes beyond their limits, and see whether these hold",
		Example: `  orrery lab prove
  orrery -C karoo lab prove web --html limits.html`,
		Long: `Loads running nodes of this host beyond each limit that the site declares, and
counts what comes through: rates of traffic at the host's end of the link, rates
of disks and processors in the node's control group. The same load runs twice
first (A/A). Then the next of the nodes bears the same load, alone and beside
the first, which shows what one node at its limit costs another.

Only the given nodes are loaded, or all of a site that is not in production. A
site in production asks first. The exit status is 11 if a limit is too high or
too low, and 4 if none could be told.`,
		RunE: call.WithRunningHosts(func(ctx context.Context, s *site.Site, args []string) error {
			o.Selectors = args
			r, err := lab.Prove(ctx, call.Session, s, o)
			if r == nil || len(r.Rows) == 0 {
				return err
			}
			if reply.IsJSON(call.Out) {
				err = errors.Join(err, r.JSON(reply.Result(call.Out)))
			} else {
				err = errors.Join(err, r.WriteText(call.Out))
			}
			if html != "" {
				if err = errors.Join(err, lab.WritePage(r, html)); err == nil && !reply.IsJSON(call.Out) {
					fmt.Fprintf(call.Out, "\n  %s\n", html)
				}
			}
			switch {
			case err != nil:
				return err
			case r.Count(provelab.TooHigh, provelab.TooLow) > 0:
				return problem.Status(problem.Unhealthy)
			case r.Count(provelab.Holds) == 0:
				return problem.Status(problem.Unable)
			}
			return nil
		}),
	}
	call.ProductionFlag(c)
	c.Flags().IntVar(&o.Rounds, "rounds", o.Rounds, "how `many` rounds to measure each limit")
	c.Flags().Float64Var(&o.Seconds, "seconds", o.Seconds, "how many `seconds` each round takes")
	c.Flags().StringVar(&html, "html", "", "also write an HTML page to this `file`")
	return verb.WithJSON(c, "print JSON")
}

// newLoad returns the verb by which prove loads the disk and the processors of a node. It runs in the
// node's control group.
func newLoad(call *verb.Call) *cobra.Command {
	return &cobra.Command{
		Use: provelab.Verb, Hidden: true, Args: cobra.NoArgs, Short: "Load a disk or processors for orrery lab prove",
		RunE: func(*cobra.Command, []string) error { return provelab.Work(call.In, call.Out) },
	}
}
