package hostverb

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"orrery/internal/cli/reply"
	"orrery/internal/cli/verb"
	"orrery/internal/control/roster"
	"orrery/internal/phrase"
	"orrery/internal/problem"
)

func hostAdd(call *verb.Call) *cobra.Command {
	c := &cobra.Command{
		Use: "add NAME ADDRESS", Short: "Make a machine a host of the site: install what it needs, check it, and write it into the site file",
		Long: `Reaches a machine by ssh at ADDRESS, such as root@10.8.1.2 (or "local": this machine); installs by apt what nodes need and it does not have; checks it as "orrery host check" does; and writes it
into site.toml. All else in there stays as it is; nothing is committed. Where the file cannot be changed, the lines are printed that are to be put in. What was interrupted goes on when the same command is given again.`,
		Example: "  orrery host add sv3 root@10.8.1.3\n  orrery host add sv1 local",
		Args:    cobra.ExactArgs(2),
		RunE: func(c *cobra.Command, args []string) error {
			added, err := roster.Add(c.Context(), call.Session, args[0], args[1])
			if err != nil {
				return err
			}
			if err := reply.Answer(call.Out, added, func() { printAdded(call.Out, added) }); err != nil {
				return err
			}
			return byHand(call.Out, added.Written, "Put this into site.toml:", added.Block)
		},
	}
	return verb.WithJSON(c, "print JSON")
}

func printAdded(out io.Writer, a *roster.Added) {
	if len(a.Installed) > 0 {
		fmt.Fprintf(out, "Installed on %s: %s.\n", a.Host, phrase.List(a.Installed, 20))
	}
	switch {
	case a.Written && a.Block == "":
		fmt.Fprintf(out, "%s is a host of the site already, and well.\n", a.Host)
	case a.Written:
		fmt.Fprintf(out, "%s is a host of the site; site.toml says so now. New nodes may come to it; orrery rebalance moves others there.\n", a.Host)
	}
}

// byHand tells what a user has to do in the site file, if it could not be changed.
func byHand(out io.Writer, written bool, what, block string) error {
	if written {
		return nil
	}
	if !reply.Wanted(out) {
		fmt.Fprintf(out, "%s\n\n%s\n", what, block)
	}
	return problem.Status(problem.Unable)
}
