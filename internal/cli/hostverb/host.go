// Package hostverb has the verbs for hosts, this one and those of a site, and for the layers that they have.
package hostverb

import (
	"context"
	"io"

	"github.com/spf13/cobra"

	"orrery/internal/cli/reply"
	"orrery/internal/cli/table"
	"orrery/internal/cli/verb"
	"orrery/internal/control/hosts"
	"orrery/internal/problem"
	"orrery/internal/site"
)

func Host(call *verb.Call) *cobra.Command {
	c := verb.Group("host", "Reach the hosts of a site, add and remove them",
		hostLs(call), hostCheck(call), hostFacts(call), hostAdd(call), hostDrain(call), hostUndrain(call), hostRemove(call))
	c.Long = `Reaches the hosts of a site, of which each that is not "local" has an address for ssh: [host.sv2] address = "ops@10.8.1.2:2222".
The login must work without a question, and must be root or become root by sudo without one. Nothing has to be installed over there for that: orrery brings itself there once.`
	return c
}

func hostLs(call *verb.Call) *cobra.Command {
	c := hostsVerb(call, "ls", "List the hosts of the site, whether they answer, and how many nodes they have", (*hosts.Call).States, table.Hosts)
	c.Long = "Lists the hosts of the site, whether they answer and how quickly, and how many of its nodes they have. The exit status is 4 if one does not answer."
	return c
}

func hostCheck(call *verb.Call) *cobra.Command {
	c := hostsVerb(call, "check", "Check that the hosts of the site are reached, and fit for nodes", (*hosts.Call).Check, table.HostsFit)
	c.Long = `Logs in to each host of the site and checks there what "orrery doctor" checks on this machine; that no two hosts are one machine; that the clocks
are not more than two seconds apart; and that packets arrive from host to host as large as networks send them. The exit status is 4 if something is wrong.`
	return c
}

// hostsVerb tells how all hosts are: to programs as JSON, otherwise as a table.
func hostsVerb(call *verb.Call, use, short string, look func(*hosts.Call, context.Context) []hosts.State, show func(io.Writer, []hosts.State) error) *cobra.Command {
	return verb.WithJSON(&cobra.Command{Use: use, Short: short, Args: cobra.NoArgs, RunE: call.OnHosts(func(ctx context.Context, s *site.Site, _ []string) error {
		all := look(call.Session.Call(s), ctx)
		if err := reply.Answer(call.Out, all, func() { _ = show(call.Out, all) }); err != nil {
			return err
		}
		if !table.HostsWrong(call.Err, all) {
			return problem.Status(problem.Unable)
		}
		return nil
	})}, "print JSON")
}

func hostFacts(call *verb.Call) *cobra.Command {
	return verb.WithJSON(&cobra.Command{
		Use: "facts HOST", Short: "Show what a host has that nodes need, as doctor does on this machine", Args: cobra.ExactArgs(1),
		RunE: call.OnSite(func(ctx context.Context, s *site.Site, args []string) error {
			facts, err := call.Session.Call(s).Facts(ctx, args[0])
			if err != nil {
				return err
			}
			return table.Facts(call.Out, facts)
		}),
	}, "print JSON")
}
