package cli

import (
	"context"
	"io"

	"github.com/spf13/cobra"

	"orrery/internal/cli/hostverb"
	"orrery/internal/cli/imageverb"
	"orrery/internal/cli/reply"
	"orrery/internal/cli/table"
	"orrery/internal/control/hosts"
	"orrery/internal/problem"
	"orrery/internal/site"
)

func hostVerb(a *app) *cobra.Command {
	c := group("host", "Reach the hosts of a site, add and remove them", append([]*cobra.Command{hostLsVerb(a), hostCheckVerb(a), hostFactsVerb(a)}, hostFace(a).Verbs()...)...)
	c.Long = `Reaches the hosts of a site, of which each that is not "local" has an address for ssh: [host.sv2] address = "ops@10.8.1.2:2222".
The login must work without a question, and must be root or become root by sudo without one. Nothing has to be installed over there for that: orrery brings itself there once.`
	return c
}

// hostFace lends verbs what all verbs share.
func hostFace(a *app) hostverb.Face {
	return hostverb.Face{Session: a.session, Out: a.out, Err: a.err, OnHosts: a.onHosts, Without: a.withoutFlag, Agree: a.agreeFlag}
}

func hostLsVerb(a *app) *cobra.Command {
	c := hostsVerb(a, "ls", "List the hosts of the site, whether they answer, and how many nodes they have", (*hosts.Call).States, table.Hosts)
	c.Long = "Lists the hosts of the site, whether they answer and how quickly, and how many of its nodes they have. The exit status is 4 if one does not answer."
	return c
}

func hostCheckVerb(a *app) *cobra.Command {
	c := hostsVerb(a, "check", "Check that the hosts of the site are reached, and fit for nodes", (*hosts.Call).Check, table.HostsFit)
	c.Long = `Logs in to each host of the site and checks there what "orrery doctor" checks on this machine; that no two hosts are one machine; that the clocks
are not more than two seconds apart; and that packets arrive from host to host as large as networks send them. The exit status is 4 if something is wrong.`
	return c
}

// hostsVerb tells how all hosts are: to programs as JSON, otherwise as a table.
func hostsVerb(a *app, use, short string, look func(*hosts.Call, context.Context) []hosts.State, show func(io.Writer, []hosts.State) error) *cobra.Command {
	return withJSON(&cobra.Command{Use: use, Short: short, Args: cobra.NoArgs, RunE: a.onHosts(func(ctx context.Context, s *site.Site, _ []string) error {
		all := look(a.session.Call(s), ctx)
		if err := reply.Answer(a.out, all, func() { _ = show(a.out, all) }); err != nil {
			return err
		}
		if !table.HostsWrong(a.err, all) {
			return problem.Status(problem.Unable)
		}
		return nil
	})}, "print JSON")
}

func imageFace(a *app) imageverb.Face {
	return imageverb.Face{Session: a.session, Out: a.out, Err: a.err, Tell: func(err error) { printError(a.err, err) }, Without: a.withoutFlag, Group: group}
}

func hostFactsVerb(a *app) *cobra.Command {
	return withJSON(&cobra.Command{
		Use: "facts HOST", Short: "Show what a host has that nodes need, as doctor does on this machine", Args: cobra.ExactArgs(1),
		RunE: a.onSite(func(ctx context.Context, s *site.Site, args []string) error {
			facts, err := a.session.Call(s).Facts(ctx, args[0])
			if err != nil {
				return err
			}
			return table.Facts(a.out, facts)
		}),
	}, "print JSON")
}

// withoutFlag lets a verb go on without some hosts.
func (a *app) withoutFlag(c *cobra.Command) {
	c.Flags().StringSliceVar(&a.session.Without, "without", nil, "leave this `host` out: what is there is taken for unknown, and nothing is done that it could contradict")
}
