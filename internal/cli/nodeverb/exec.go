package nodeverb

import (
	"context"

	"github.com/spf13/cobra"

	"orrery/internal/cli/verb"
	"orrery/internal/control/nodes"
	"orrery/internal/problem"
	"orrery/internal/site"
)

// Exec returns the command `orrery exec`.
func Exec(call *verb.Call) *cobra.Command {
	var o nodes.ExecOptions
	var raw, grouped bool
	c := &cobra.Command{
		Use:   "exec SELECTOR... -- COMMAND...",
		Short: "Run a command on many nodes at once",
		Long: `Runs a command on all selected nodes in parallel and prefixes each line of
output with the name of its node. If standard input is not a terminal, every
node gets a copy of it; all nodes then run at once, at the pace of the slowest.

The exit status is 0 if the command succeeded everywhere, otherwise 100 + the
number of nodes on which it failed (at most 200). --json prints a list with the
exit status of each node (-1: the command did not finish, and "error" says why)
and the first MiB of its output.`,
		Example: "  orrery exec role=receptor -- systemctl is-system-running\n  orrery exec role=db --timeout 30s -- psql -f - < schema.sql",
		Args:    cobra.MinimumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			dash := c.ArgsLenAtDash()
			if dash < 1 || dash == len(args) {
				return problem.New(problem.Usage, "no node or no command given").Try("orrery exec SELECTOR -- COMMAND")
			}
			o.Command, o.Stdin, o.Fixed = args[dash:], call.In, c.Flags().Changed("parallel")
			to := call.Raw(raw)
			return call.WithRunningHosts(func(ctx context.Context, s *site.Site, selectors []string) error {
				endings, err := nodes.Exec(ctx, call.Session, s, selectors, o,
					func(of []*site.Node) nodes.Output { return newSpeech(to.Out, to.Err, of, grouped) })
				return printTally(to.Err, endings, err)
			})(c, args[:dash])
		},
	}
	f := c.Flags()
	f.StringVarP(&o.User, "user", "u", "", "run as this `user` in the nodes")
	rawFlag(c, &raw)
	f.IntVar(&o.Parallel, "parallel", 16, "maximum number of nodes at once")
	f.DurationVar(&o.Timeout, "timeout", 0, "stop the command on a node after this time (default: never)")
	f.BoolVar(&grouped, "group", false,
		"print each node's output (up to 1 MiB) when it has finished")
	call.ReleaseFlag(c)
	call.WithoutFlag(c)
	return verb.WithJSON(c, "print a JSON list")
}

func rawFlag(c *cobra.Command, raw *bool) {
	c.Flags().BoolVar(raw, "raw", false,
		"pass on escape sequences, as for colours (default: as \\x1b)")
}
