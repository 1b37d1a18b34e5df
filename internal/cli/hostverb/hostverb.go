// Package hostverb has the verbs of `orrery host` that change which hosts a site has and which
// nodes they run.
package hostverb

import (
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"orrery/internal/cli/reply"
	"orrery/internal/cli/screen"
	"orrery/internal/cli/table"
	"orrery/internal/control"
	"orrery/internal/control/roster"
	"orrery/internal/phrase"
	"orrery/internal/plan"
	"orrery/internal/plan/place"
	"orrery/internal/problem"
	"orrery/internal/site"
)

// A Face is what verbs share: on whose behalf they act, and where they print.
type Face struct {
	Session  *control.Session
	Out, Err io.Writer
	OnHosts  func(do func(context.Context, *site.Site, []string) error) func(*cobra.Command, []string) error // what is done with the site that is meant
	Without  func(*cobra.Command)                                                                            // the flag that leaves hosts out
	Agree    func(c *cobra.Command, about control.Consent, usage string)                                     // a flag by which is agreed beforehand
}

// Verbs returns those below `host`.
func (f Face) Verbs() []*cobra.Command {
	return []*cobra.Command{f.add(), f.drain(), f.undrain(), f.remove()}
}

func withJSON(c *cobra.Command) *cobra.Command {
	c.Flags().Bool("json", false, "print JSON")
	return c
}

func (f Face) add() *cobra.Command {
	c := &cobra.Command{
		Use: "add NAME ADDRESS", Short: "Make a machine a host of the site: install what it needs, check it, and write it into the site file",
		Long: `Reaches a machine by ssh at ADDRESS, such as root@10.8.1.2 (or "local": this machine); installs by apt what nodes need and it does not have; checks it as "orrery host check" does; and writes it
into site.toml. All else in there stays as it is; nothing is committed. Where the file cannot be changed, the lines are printed that are to be put in. What was interrupted goes on when the same command is given again.`,
		Example: "  orrery host add sv3 root@10.8.1.3\n  orrery host add sv1 local",
		Args:    cobra.ExactArgs(2),
		RunE: func(c *cobra.Command, args []string) error {
			added, err := roster.Add(c.Context(), f.Session, args[0], args[1])
			if err != nil {
				return err
			}
			if err := reply.Answer(f.Out, added, func() { f.printAdded(added) }); err != nil {
				return err
			}
			return f.byHand(added.Written, "Put this into site.toml:", added.Block)
		},
	}
	return withJSON(c)
}

func (f Face) printAdded(a *roster.Added) {
	if len(a.Installed) > 0 {
		fmt.Fprintf(f.Out, "Installed on %s: %s.\n", a.Host, phrase.List(a.Installed, 20))
	}
	switch {
	case a.Written && a.Block == "":
		fmt.Fprintf(f.Out, "%s is a host of the site already, and well.\n", a.Host)
	case a.Written:
		fmt.Fprintf(f.Out, "%s is a host of the site; site.toml says so now. New nodes may come to it; orrery rebalance moves others there.\n", a.Host)
	}
}

// byHand tells what a user has to do in the site file, if it could not be changed.
func (f Face) byHand(written bool, what, block string) error {
	if written {
		return nil
	}
	if !reply.Wanted(f.Out) {
		fmt.Fprintf(f.Out, "%s\n\n%s\n", what, block)
	}
	return problem.Status(problem.Unable)
}

func (f Face) remove() *cobra.Command {
	c := &cobra.Command{
		Use: "remove HOST", Short: "Take a host out of the site, on which no nodes are any more",
		Long: `Takes a host out of the site: networks and all that it keeps of the site are removed there, the program of Orrery too if no other site is there, and its lines go out of site.toml. It is refused while
nodes or volumes are on the host ("orrery host drain" moves nodes away), and if the host does not answer. Of one that is lost for good, take the lines out of site.toml yourself.`,
		Example: "  orrery host drain sv3 && orrery host remove sv3",
		Args:    cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			removed, err := roster.Remove(c.Context(), f.Session, args[0])
			if err != nil {
				return err
			}
			if err := reply.Answer(f.Out, removed, func() {
				fmt.Fprintf(f.Out, "%s has nothing of the site any more.\n", removed.Host)
				for _, left := range removed.Left {
					fmt.Fprintf(f.Out, "Left there: %s.\n", left)
				}
			}); err != nil {
				return err
			}
			return f.byHand(removed.Written, "Take this out of site.toml:", removed.Block)
		},
	}
	return withJSON(c)
}

func (f Face) drain() *cobra.Command {
	d := roster.Drain{Show: f.show}
	c := &cobra.Command{
		Use: "drain HOST", Short: "Keep new nodes away from a host, and move those on it to others",
		Long: `Puts a mark on a host that no node of the site comes to it any more, and moves those that are on it to hosts with room for them. What is to move is shown with the reason, and you are asked first. What cannot go is
named, with the cure; the exit status is 4 then. The mark is on the host itself, so every machine that steers the site knows of it, and it survives a reboot; "orrery host undrain" takes it away.`,
		Args: cobra.ExactArgs(1),
		RunE: f.OnHosts(func(ctx context.Context, s *site.Site, args []string) error {
			d.Host = args[0]
			m, err := d.Run(ctx, f.Session, s)
			if m == nil {
				return err
			}
			if bad := reply.Answer(f.Out, m, func() { f.printDrained(m, s, d.Stay, err) }); err == nil {
				err = bad
			}
			if err == nil && len(m.Stuck) > 0 && !d.Stay {
				return problem.Status(problem.Unable)
			}
			return err
		}),
	}
	c.Flags().BoolVar(&d.Stay, "stay", false, "let the nodes that are on it stay there")
	f.Agree(c, control.Moves, "the `name` of the site, so that you are not asked before nodes move")
	f.Without(c)
	return withJSON(c)
}

func (f Face) printDrained(m *roster.Moved, s *site.Site, stay bool, failed error) {
	if len(m.Moved) > 0 {
		table.Moved(f.Out, s.Name, m.Moved, failed)
	}
	if failed != nil {
		return
	}
	fmt.Fprintf(f.Out, "%s is drained: no node of the site comes to it any more.\n", m.Host)
	if stay {
		return
	}
	table.Moves(f.Out, place.Moves{Stuck: m.Stuck})
}

// show shows what is to move, and how.
func (f Face) show(m place.Moves, p *plan.Plan) {
	if reply.Wanted(f.Out) {
		return
	}
	table.Moves(f.Err, m)
	screen.Plan(f.Err, p)
}

func (f Face) undrain() *cobra.Command {
	return &cobra.Command{
		Use: "undrain HOST", Short: "Let nodes come to a host again that was drained", Args: cobra.ExactArgs(1),
		RunE: f.OnHosts(func(ctx context.Context, s *site.Site, args []string) error {
			was, err := roster.Undrain(ctx, f.Session, s, args[0])
			if err != nil {
				return err
			}
			if !was {
				fmt.Fprintf(f.Out, "%s was not drained.\n", args[0])
				return nil
			}
			fmt.Fprintf(f.Out, "Nodes may come to %s again; orrery rebalance moves some there.\n", args[0])
			return nil
		}),
	}
}

// Rebalance returns the verb of that name.
func (f Face) Rebalance() *cobra.Command {
	dry := false
	c := &cobra.Command{
		Use: "rebalance", Short: "Move nodes so that groups are spread and hosts are about as full as one another", Args: cobra.NoArgs,
		Long: `Proposes which nodes of the site to move to other hosts, and why: first those of groups with spread = "host" that are too many on one host, then those that make one host fuller than others. They are as few as may
be, since each node that moves stands still for a moment. Nodes with host = in the site file, and those that a device of their host ties to it, are left where they are. You are asked before anything is done.
With --dry-run, nothing is; the exit status is 0 then if there is nothing to move and 10 if there is.`,
		RunE: f.OnHosts(func(ctx context.Context, s *site.Site, _ []string) error {
			if dry {
				return f.propose(ctx, s)
			}
			m, err := roster.Rebalance(ctx, f.Session, s, f.show)
			if m == nil {
				return err
			}
			if bad := reply.Answer(f.Out, m, func() {
				if err == nil && len(m.Moves.Moves) == 0 {
					fmt.Fprintf(f.Out, "%s: nothing to move.\n", s.Key())
				} else if len(m.Moved) > 0 {
					table.Moved(f.Out, s.Name, m.Moved, err)
				}
			}); err == nil {
				err = bad
			}
			return err
		}),
	}
	c.Flags().BoolVar(&dry, "dry-run", false, "only show what would be moved, and why")
	f.Agree(c, control.Moves, "the `name` of the site, so that you are not asked before nodes move")
	f.Without(c)
	return withJSON(c)
}

// propose shows what would be moved.
func (f Face) propose(ctx context.Context, s *site.Site) error {
	moves, err := roster.Propose(ctx, f.Session, s)
	if err != nil {
		return err
	}
	if err := reply.Answer(f.Out, moves, func() {
		if len(moves.Moves) == 0 {
			fmt.Fprintf(f.Out, "%s: nothing to move.\n", s.Key())
		}
		table.Moves(f.Out, moves)
	}); err != nil || len(moves.Moves) == 0 {
		return err
	}
	return problem.Status(problem.Changes)
}
