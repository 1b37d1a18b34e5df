package nodeverb

import (
	"context"
	"errors"
	"io"

	"github.com/spf13/cobra"

	"orrery/internal/cli/screen"
	"orrery/internal/cli/verb"
	"orrery/internal/control"
	"orrery/internal/control/nodes"
	"orrery/internal/host"
	"orrery/internal/problem"
	"orrery/internal/site"
)

// Console returns the command `orrery console`.
func Console(call *verb.Call) *cobra.Command {
	var log, raw bool
	var lines int
	c := &cobra.Command{
		Use:   "console NODE",
		Short: "Work at the serial console of a virtual machine",
		Long: `Connects this terminal to the serial console of a virtual machine: what was printed on it comes first, then what is printed now, and what you type
goes there. Press Enter for a shell of root in the node, once its init runs. This needs no network and no agent in the node, so it also shows why one does not boot. Ctrl-] leaves.
One person at a time has the console of a node.

With --log, or where the output is no terminal, it prints the last lines and ends. They are kept when the node stops.`,
		Example: "  orrery console db\n  orrery console db --log --lines 50",
		Args:    cobra.ExactArgs(1),
		RunE: call.AsRoot(call.WithSite(func(ctx context.Context, s *site.Site, args []string) error {
			if lines < 0 {
				return problem.New(problem.Usage, "--lines %d: there is no such number of lines", lines).Try("--lines 200")
			}
			to := call.Raw(raw)
			at, err := nodes.ConsoleOf(ctx, call.Session, s, args[0])
			if err != nil {
				return err
			}
			if log || !host.IsTerminal(call.In) || !host.IsTerminal(screen.Raw(call.Out)) {
				return printLast(to.Out, at, lines)
			}
			return control.JournalIfMember(call.Session, s, func() error {
				line, err := at.Attach(ctx, control.Holder(call.Session))
				if err != nil {
					return err
				}
				if err := printLast(to.Out, at, lines); err != nil {
					return errors.Join(err, line.Close())
				}
				return screen.Console(ctx, to.Out, to.Err, at.Node, line)
			})
		})),
	}
	c.Flags().BoolVar(&log, "log", false, "print what was printed on it since the node was started, and do not connect")
	c.Flags().IntVarP(&lines, "lines", "n", 200, "how many lines of what was printed before")
	rawFlag(c, &raw)
	call.ReleaseFlag(c)
	return c
}

// printLast prints the last lines of a console.
func printLast(out io.Writer, at *nodes.Console, lines int) error {
	text, err := at.LastLines(lines)
	if err != nil {
		return err
	}
	_, err = io.WriteString(out, text)
	return err
}
