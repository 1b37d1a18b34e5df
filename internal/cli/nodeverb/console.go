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
		Long: `Connects this terminal to the serial console of a virtual machine, after
printing its latest output. Press Enter for a root shell in the node, once its
init runs. The console needs no network and no agent in the node, so it also
shows why a node does not boot. Ctrl-] leaves. Only one person at a time can
use the console of a node.

With --log, or if the output is not a terminal, it prints the last lines and
ends. They are kept when the node stops.`,
		Example: "  orrery console db\n  orrery console db --log --lines 50",
		Args:    cobra.ExactArgs(1),
		RunE: call.AsRoot(call.WithRunning(func(ctx context.Context, s *site.Site, args []string) error {
			if lines < 0 {
				return problem.New(problem.Usage, "--lines %d: the number is negative", lines).Try("use a number such as --lines 200")
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
	c.Flags().BoolVar(&log, "log", false, "print the output since the node started; do not connect")
	c.Flags().IntVarP(&lines, "lines", "n", 200, "how many lines of earlier output to print")
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
