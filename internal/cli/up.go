package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"orrery/internal/apply"
	"orrery/internal/cli/reply"
	"orrery/internal/cli/screen"
	"orrery/internal/cli/table"
	"orrery/internal/cli/value"
	"orrery/internal/cli/verb"
	"orrery/internal/control"
	"orrery/internal/control/nodes"
	"orrery/internal/control/overdue"
	"orrery/internal/control/sites"
	"orrery/internal/site"
)

func upVerb(call *verb.Call) *cobra.Command {
	dry := false
	var how sites.UpOptions
	c := &cobra.Command{
		Use:   "up [SELECTOR...]",
		Short: "Bring the site up as declared: nodes running, configured and healthy",
		Long: `Brings the site up as the site file declares it: builds missing layers, makes networks and nodes, applies roles and waits until every node is healthy.
What is already as declared is left alone. With --probe it also looks into the running nodes and repairs drift: whatever is no longer as roles and
layers made it. Without a selector, it removes nodes and networks that are no longer declared.

With --batch, or if a group sets a batch, running nodes are disturbed in batches. Each batch begins when the nodes of the one before are healthy. If a batch
fails, its nodes are put back as they were, and no other begins.`,
		RunE: func(c *cobra.Command, args []string) error {
			if dry {
				return preview(c.Context(), call.Session, call.Out, args, sites.PreviewOptions{Probe: how.Probe, Batch: how.Batch})
			}
			return call.OnSite(func(ctx context.Context, s *site.Site, selectors []string) error {
				return bringUp(ctx, call.Session, call.Output, s, selectors, how)
			})(c, args)
		},
	}
	call.ProductionFlag(c)
	c.Flags().BoolVar(&dry, "dry-run", false, "only show what would be done, as orrery plan does")
	c.Flags().BoolVar(&how.Undo, "undo", false, "undo everything if anything fails")
	c.Flags().BoolVar(&how.Probe, "probe", false, "look for drift in the running nodes, and repair it")
	verb.ParallelFlag(c, &how.Parallel)
	verb.BatchFlag(c, &how.Batch)
	call.WithoutFlag(c)
	return c
}

func bringUp(ctx context.Context, session *control.Session, to verb.Output, s *site.Site, selectors []string, how sites.UpOptions) error {
	result, elsewhere, err := sites.Up(ctx, session, s, selectors, how)
	if elsewhere != "" {
		fmt.Fprintf(to.Err, "orrery: %s is up from %s, and not from the directory where this command was given.\n", s.Key(), elsewhere)
		return nil
	}
	return verb.PrintUp(ctx, session, to.Out, s, selectors, result, err)
}

func stateVerbs(call *verb.Call) []*cobra.Command {
	renew := stateVerb(call, "renew", "Let virtual machines go on in the QEMU that is installed now, without booting", "up to date", sites.Renew)
	renew.Long = `Lets virtual machines that run go on in the QEMU and with the virtiofsd that are installed now: without SELECTOR, those whose programs were replaced, as orrery status tells.
Processes, memory and connections stay; a machine stands still for a moment. Meanwhile the host needs the memory of one more machine. What cannot go over goes on where it was.`
	return []*cobra.Command{renew, restartVerb(call), moveVerb(call), stateVerb(call, "start", "Start nodes that are there, as they are", "running", sites.Start),
		value.Ending(stateVerb(call, "stop", "Shut nodes down and keep all that is theirs", "stopped", sites.Stop), &call.Session.Ending)}
}

func moveVerb(call *verb.Call) *cobra.Command {
	to, preview := "", false
	c := &cobra.Command{
		Use: "move SELECTOR... --to HOST", Args: cobra.MinimumNArgs(1),
		Short: "Move nodes to another host with all that is theirs",
		Long: `Moves nodes with what they have written, their own volumes, SSH host keys, name, addresses and MACs. They are copied while they run; then they stop, the rest is copied, and they start on the other host.
If that fails before a node was given away, it goes on where it was. What was cut short is brought to its end by the next run of the same command, or of orrery up.`,
		RunE: call.OnHosts(func(ctx context.Context, s *site.Site, selectors []string) error {
			if preview {
				p, err := nodes.MovePlan(ctx, call.Session, s, selectors, to)
				if err != nil {
					return err
				}
				return reply.Answer(call.Out, screen.PlanJSON(p), func() { screen.Plan(call.Out, p) })
			}
			all, err := nodes.Move(ctx, call.Session, s, selectors, to)
			if bad := reply.Answer(call.Out, all, func() { table.Moved(call.Out, s.Name, all, err) }); err == nil {
				err = bad
			}
			return err
		}),
	}
	c.Flags().StringVar(&to, "to", "", "the `HOST` to which they go")
	_ = c.MarkFlagRequired("to")
	c.Flags().BoolVar(&preview, "plan", false, "show the steps and do nothing")
	call.ProductionFlag(c)
	call.WithoutFlag(c)
	return verb.WithJSON(c, "print JSON")
}

func restartVerb(call *verb.Call) *cobra.Command {
	c := stateVerb(call, "restart", "Stop nodes and start them again, as they are", "gone", nodes.Restart)
	return value.Ending(c, &call.Session.Ending)
}

func stateVerb(call *verb.Call, name, short, state string, set func(context.Context, *control.Session, *site.Site, []string) (*apply.Result, error)) *cobra.Command {
	c := &cobra.Command{
		Use:   name + " [SELECTOR...]",
		Short: short,
		RunE: call.OnSite(func(ctx context.Context, s *site.Site, selectors []string) error {
			result, err := set(ctx, call.Session, s, selectors)
			if err == nil && result == nil {
				fmt.Fprintf(call.Out, "%s: all of them are %s.\n", s.Name, state)
			}
			return err
		}),
	}
	call.ProductionFlag(c)
	call.WithoutFlag(c)
	return c
}

func resumeVerb(call *verb.Call) *cobra.Command {
	return &cobra.Command{
		Use:   "resume",
		Short: "Bring every site up again that was up on this host (after a reboot)",
		Long: `Brings up again every site and twin that was up on this host and was not taken down. Twins that have expired meanwhile are destroyed.
Of a site on several hosts, it starts the nodes of this host that are as they were when the site was last changed; it needs neither the others nor the site directory.
A release that was on trial is watched again; if its time is over, the nodes return to the former release.`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			err := overdue.ResumeExpiries(c.Context(), call.Session)
			keys, failed := overdue.ResumeAlone(c.Context(), call.Session)
			err = errors.Join(err, failed)
			for _, m := range call.Session.Register().SitesUp() {
				if slices.Contains(keys, m.Key()) {
					continue
				}
				fmt.Fprintf(call.Out, "%s from %s\n", m.Key(), m.Dir)
				s, result, failed := sites.ResumeSite(c.Context(), call.Session, m)
				err = errors.Join(err, verb.PrintUp(c.Context(), call.Session, call.Out, s, nil, result, failed))
			}
			return err
		},
	}
}
