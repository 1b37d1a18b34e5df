package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"orrery/internal/apply"
	"orrery/internal/cli/reply"
	"orrery/internal/cli/screen"
	"orrery/internal/cli/table"
	"orrery/internal/cli/value"
	"orrery/internal/control"
	"orrery/internal/control/nodes"
	"orrery/internal/control/overdue"
	"orrery/internal/control/sites"
	"orrery/internal/site"
)

func upVerb(a *app) *cobra.Command {
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
				return preview(c.Context(), a.session, a.out, args, sites.PreviewOptions{Probe: how.Probe, Batch: how.Batch})
			}
			return a.onSite(func(ctx context.Context, s *site.Site, selectors []string) error {
				return bringUp(ctx, a.session, a.output, s, selectors, how)
			})(c, args)
		},
	}
	a.productionFlag(c)
	c.Flags().BoolVar(&dry, "dry-run", false, "only show what would be done, as orrery plan does")
	c.Flags().BoolVar(&how.Undo, "undo", false, "undo everything if anything fails")
	c.Flags().BoolVar(&how.Probe, "probe", false, "look for drift in the running nodes, and repair it")
	parallelFlag(c, &how.Parallel)
	batchFlag(c, &how.Batch)
	a.withoutFlag(c)
	return c
}

func bringUp(ctx context.Context, session *control.Session, to output, s *site.Site, selectors []string, how sites.UpOptions) error {
	result, elsewhere, err := sites.Up(ctx, session, s, selectors, how)
	if elsewhere != "" {
		fmt.Fprintf(to.err, "orrery: %s is up from %s, and not from the directory where this command was given.\n", s.Key(), elsewhere)
		return nil
	}
	return printUp(ctx, session, to.out, s, selectors, result, err)
}

// printUp shows how the nodes of a site are that has been brought up, if so.
func printUp(ctx context.Context, session *control.Session, out io.Writer, s *site.Site, selectors []string, result *apply.Result, err error) error {
	if err != nil {
		return err
	}
	if result == nil && !reply.Wanted(out) {
		fmt.Fprintf(out, "%s is up: nothing to do.\n", s.Key())
		return nil
	}
	if err := showNodes(ctx, session, out, s, selectors); err != nil {
		return err
	}
	howToGoOn(out, s)
	return nil
}

// howToGoOn says what a user may want to do next.
func howToGoOn(out io.Writer, s *site.Site) {
	first := "NODE"
	if len(s.Nodes) > 0 {
		first = s.Nodes[0].Name
	}
	orrery, down := "orrery", "orrery down"
	end := "end it all; volumes are kept"
	if s.Twin != "" {
		orrery += " --twin " + s.Twin
		down, end = "orrery twin destroy "+s.Twin, "end it all"
	}
	t := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintf(t, "\n  %s shell %s\ta terminal in a node\n  %s status\thow the nodes are\n  %s\t%s\n", orrery, first, orrery, down, end)
	_ = t.Flush()
}

func stateVerbs(a *app) []*cobra.Command {
	renew := stateVerb(a, "renew", "Let virtual machines go on in the QEMU that is installed now, without booting", "up to date", sites.Renew)
	renew.Long = `Lets virtual machines that run go on in the QEMU and with the virtiofsd that are installed now: without SELECTOR, those whose programs were replaced, as orrery status tells.
Processes, memory and connections stay; a machine stands still for a moment. Meanwhile the host needs the memory of one more machine. What cannot go over goes on where it was.`
	return []*cobra.Command{renew, restartVerb(a), moveVerb(a), stateVerb(a, "start", "Start nodes that are there, as they are", "running", sites.Start),
		value.Ending(stateVerb(a, "stop", "Shut nodes down and keep all that is theirs", "stopped", sites.Stop), &a.session.Ending)}
}

func moveVerb(a *app) *cobra.Command {
	to, preview := "", false
	c := &cobra.Command{
		Use: "move SELECTOR... --to HOST", Args: cobra.MinimumNArgs(1),
		Short: "Move nodes to another host with all that is theirs",
		Long: `Moves nodes with what they have written, their own volumes, SSH host keys, name, addresses and MACs. They are copied while they run; then they stop, the rest is copied, and they start on the other host.
If that fails before a node was given away, it goes on where it was. What was cut short is brought to its end by the next run of the same command, or of orrery up.`,
		RunE: a.onHosts(func(ctx context.Context, s *site.Site, selectors []string) error {
			if preview {
				p, err := nodes.MovePlan(ctx, a.session, s, selectors, to)
				if err != nil {
					return err
				}
				return reply.Answer(a.out, screen.PlanJSON(p), func() { screen.Plan(a.out, p) })
			}
			all, err := nodes.Move(ctx, a.session, s, selectors, to)
			if bad := reply.Answer(a.out, all, func() { table.Moved(a.out, s.Name, all, err) }); err == nil {
				err = bad
			}
			return err
		}),
	}
	c.Flags().StringVar(&to, "to", "", "the `HOST` to which they go")
	_ = c.MarkFlagRequired("to")
	c.Flags().BoolVar(&preview, "plan", false, "show the steps and do nothing")
	a.productionFlag(c)
	a.withoutFlag(c)
	return withJSON(c, "print JSON")
}

func restartVerb(a *app) *cobra.Command {
	c := stateVerb(a, "restart", "Stop nodes and start them again, as they are", "gone", nodes.Restart)
	return value.Ending(c, &a.session.Ending)
}

func stateVerb(a *app, name, short, state string, set func(context.Context, *control.Session, *site.Site, []string) (*apply.Result, error)) *cobra.Command {
	c := &cobra.Command{
		Use:   name + " [SELECTOR...]",
		Short: short,
		RunE: a.onSite(func(ctx context.Context, s *site.Site, selectors []string) error {
			result, err := set(ctx, a.session, s, selectors)
			if err == nil && result == nil {
				fmt.Fprintf(a.out, "%s: all of them are %s.\n", s.Name, state)
			}
			return err
		}),
	}
	a.productionFlag(c)
	a.withoutFlag(c)
	return c
}

func resumeVerb(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "resume",
		Short: "Bring every site up again that was up on this host (after a reboot)",
		Long: `Brings up again every site and twin that was up on this host and was not taken down. Twins that have expired meanwhile are destroyed.
Of a site on several hosts, it starts the nodes of this host that are as they were when the site was last changed; it needs neither the others nor the site directory.
A release that was on trial is watched again; if its time is over, the nodes return to the former release.`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			err := overdue.ResumeExpiries(c.Context(), a.session)
			keys, failed := overdue.ResumeAlone(c.Context(), a.session)
			err = errors.Join(err, failed)
			for _, m := range a.session.Register().SitesUp() {
				if slices.Contains(keys, m.Key()) {
					continue
				}
				fmt.Fprintf(a.out, "%s from %s\n", m.Key(), m.Dir)
				s, result, failed := sites.ResumeSite(c.Context(), a.session, m)
				err = errors.Join(err, printUp(c.Context(), a.session, a.out, s, nil, result, failed))
			}
			return err
		},
	}
}
