// Package hostverb has the verbs for hosts, and for the layers that they have. The hosts are this
// machine and those of a site.
package hostverb

import (
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"orrery/internal/cli/reply"
	"orrery/internal/cli/table"
	"orrery/internal/cli/verb"
	"orrery/internal/control/hosts"
	"orrery/internal/control/roster"
	"orrery/internal/problem"
	"orrery/internal/site"
	"orrery/internal/text/humanize"
)

// Host returns the command `orrery host`.
func Host(call *verb.Call) *cobra.Command {
	c := verb.Group("host", "Reach the hosts of a site, add and remove them",
		hostLs(call), hostCheck(call), hostFacts(call), hostAdd(call), hostDrain(call), hostUndrain(call), hostRemove(call))
	c.Long = `Reaches the hosts of a site, of which each that is not "local" has an address for ssh: [host.sv2] address = "ops@10.8.1.2:2222".
The login must work without a question, and must be root or become root by sudo without one. Nothing has to be installed over there for that: orrery brings itself there once.`
	return c
}

func hostLs(call *verb.Call) *cobra.Command {
	c := hostsVerb(call, "ls", "List the hosts of the site, whether they answer, and how many nodes they have",
		(*hosts.Connector).States, table.Hosts)
	c.Long = "Lists the hosts of the site, whether they answer and how quickly, and how many of its nodes they have. The exit status is 4 if one does not answer."
	return c
}

func hostCheck(call *verb.Call) *cobra.Command {
	c := hostsVerb(call, "check", "Check that the hosts of the site are reached, and fit for nodes",
		(*hosts.Connector).Check,
		table.HostsFit)
	c.Long = `Logs in to each host of the site and checks there what "orrery doctor" checks on this machine; that no two hosts are one machine; that the clocks
are not more than two seconds apart; and that packets arrive from host to host as large as networks send them. The exit status is 4 if something is wrong.`
	return c
}

// hostsVerb returns a verb that prints the states of all hosts, as JSON or as a table.
func hostsVerb(call *verb.Call, use, short string, look func(*hosts.Connector, context.Context) []hosts.State,
	show func(io.Writer, []hosts.State) error) *cobra.Command {
	return verb.WithJSON(&cobra.Command{Use: use, Short: short, Args: cobra.NoArgs,
		RunE: call.WithHosts(func(ctx context.Context, s *site.Site, _ []string) error {
			all := look(call.Session.Connector(s), ctx)
			if err := show(call.Out, all); err != nil {
				return err
			}
			if !table.HostProblems(call.Err, all) {
				return problem.Status(problem.Unable)
			}
			return nil
		})}, "print JSON")
}

func hostFacts(call *verb.Call) *cobra.Command {
	return verb.WithJSON(&cobra.Command{
		Use: "facts HOST", Short: "Show what a host has that nodes need, as doctor does on this machine",
		Args: cobra.ExactArgs(1),
		RunE: call.WithSite(func(ctx context.Context, s *site.Site, args []string) error {
			facts, err := call.Session.Connector(s).Facts(ctx, args[0])
			if err != nil {
				return err
			}
			return table.Facts(call.Out, facts)
		}),
	}, "print JSON")
}

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
			return printManualEdit(call.Out, added.Written, "Put this into site.toml:", added.Block)
		},
	}
	return verb.WithJSON(c, "print JSON")
}

func printAdded(out io.Writer, a *roster.Added) {
	if len(a.Installed) > 0 {
		fmt.Fprintf(out, "Installed on %s: %s.\n", a.Host, humanize.List(a.Installed, 20))
	}
	switch {
	case a.Written && a.Block == "":
		fmt.Fprintf(out, "%s is a host of the site already, and well.\n", a.Host)
	case a.Written:
		fmt.Fprintf(out, "%s is a host of the site; site.toml says so now. New nodes may come to it; orrery rebalance moves others there.\n",
			a.Host)
	}
}

// printManualEdit prints what the user must do in the site file, if it could not be changed.
func printManualEdit(out io.Writer, written bool, what, block string) error {
	if written {
		return nil
	}
	if !reply.IsJSON(out) {
		fmt.Fprintf(out, "%s\n\n%s\n", what, block)
	}
	return problem.Status(problem.Unable)
}

func hostRemove(call *verb.Call) *cobra.Command {
	c := &cobra.Command{
		Use: "remove HOST", Short: "Take a host out of the site, on which no nodes are any more",
		Long: `Takes a host out of the site: networks and all that it keeps of the site are removed there, the program of Orrery too if no other site is there, and its lines go out of site.toml. It is refused while
nodes or volumes are on the host ("orrery host drain" moves nodes away), and if the host does not answer. Of one that is lost for good, take the lines out of site.toml yourself.`,
		Example: "  orrery host drain sv3 && orrery host remove sv3",
		Args:    cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			removed, err := roster.Remove(c.Context(), call.Session, args[0])
			if err != nil {
				return err
			}
			if err := reply.Answer(call.Out, removed, func() {
				fmt.Fprintf(call.Out, "%s has nothing of the site any more.\n", removed.Host)
				for _, left := range removed.Left {
					fmt.Fprintf(call.Out, "Left there: %s.\n", left)
				}
			}); err != nil {
				return err
			}
			return printManualEdit(call.Out, removed.Written, "Take this out of site.toml:", removed.Block)
		},
	}
	return verb.WithJSON(c, "print JSON")
}
