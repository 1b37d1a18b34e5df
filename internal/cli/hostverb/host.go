// Package hostverb has the verbs for hosts, and for the layers that they have. The hosts are this
// machine and those of a site, which it also simulates on this machine, with their failures.
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
	c := verb.Group("host", "List, check, add, drain and remove the hosts of a site",
		hostLs(call), hostCheck(call), hostFacts(call), hostAdd(call), hostDrain(call), hostUndrain(call), hostRemove(call))
	c.Long = `Connects to the hosts of a site. Each host that is not "local" has an address
for ssh: [host.sv2] address = "ops@10.8.1.2:2222". The login must not ask for
anything, and must be root or become root by sudo without a password. Nothing
needs to be installed on the host for that: orrery copies itself there once.`
	return c
}

func hostLs(call *verb.Call) *cobra.Command {
	c := hostsVerb(call, "ls", "List the hosts, whether they answer, and how many nodes they have",
		(*hosts.Connector).States, table.Hosts)
	c.Example = "  orrery host ls"
	c.Long = "Lists the hosts of the site, whether they answer and how quickly, and how many\nof its nodes they have. The exit status is 4 if one does not answer."
	return c
}

func hostCheck(call *verb.Call) *cobra.Command {
	c := hostsVerb(call, "check", "Check that the hosts answer and are fit for nodes",
		(*hosts.Connector).Check,
		table.HostsFit)
	c.Example = "  orrery host check"
	c.Long = `Logs in to each host of the site and checks what "orrery doctor" checks on this
host. It also checks that no two hosts are the same machine, that their clocks
differ by at most two seconds, and that packets as large as the networks send
them arrive from host to host. The exit status is 4 if something is wrong.`
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
		Use: "facts HOST", Short: "Check whether one host is fit for nodes, as doctor does here",
		Example: "  orrery host facts sv2",
		Args:    cobra.ExactArgs(1),
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
		Use: "add NAME ADDRESS", Short: "Add a host to the site: install what it needs and check it",
		Long: `Connects by ssh to a machine at ADDRESS, such as root@10.8.1.2 (or "local":
this machine), installs missing packages with apt, checks the machine as
"orrery host check" does, and adds it to site.toml. The rest of the file is
unchanged; nothing is committed. If the file cannot be changed, the command
prints the lines to add. If it was interrupted, run the same command to resume.`,
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
			return printManualEdit(call.Out, added.Written, "Add this to site.toml:", added.Block)
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
		fmt.Fprintf(out, "%s is already a host of the site, and fit for nodes.\n", a.Host)
	case a.Written:
		fmt.Fprintf(out, "%s was added to site.toml. New nodes may be placed on it; "+
			"orrery rebalance moves existing ones to it.\n", a.Host)
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
		Use: "remove HOST", Short: "Remove a host without nodes from the site",
		Long: `Removes a host from the site: deletes the site's networks and state on the
host, and the program of Orrery if the host has no other site, and removes the
host from site.toml. It is refused while nodes or volumes are on the host
("orrery host drain" moves nodes away), and if the host does not answer. If a
host is lost for good, remove its lines from site.toml yourself.`,
		Example: "  orrery host drain sv3\n  orrery host remove sv3",
		Args:    cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			removed, err := roster.Remove(c.Context(), call.Session, args[0])
			if err != nil {
				return err
			}
			if err := reply.Answer(call.Out, removed, func() {
				fmt.Fprintf(call.Out, "%s is removed from the site.\n", removed.Host)
				for _, left := range removed.Left {
					fmt.Fprintf(call.Out, "Left on the host: %s.\n", left)
				}
			}); err != nil {
				return err
			}
			return printManualEdit(call.Out, removed.Written, "Remove this from site.toml:", removed.Block)
		},
	}
	return verb.WithJSON(c, "print JSON")
}
