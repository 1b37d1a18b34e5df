package dataverb

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"orrery/internal/cli/reply"
	"orrery/internal/cli/table"
	"orrery/internal/cli/verb"
	"orrery/internal/control"
	"orrery/internal/control/snapshots"
	"orrery/internal/site"
	"orrery/internal/text/humanize"
)

// Snapshot returns the command `orrery snapshot`.
func Snapshot(call *verb.Call) *cobra.Command {
	var with snapshots.Extras
	c := &cobra.Command{
		Use:   "snapshot [SELECTOR...]",
		Short: "Take a snapshot of nodes at one moment",
		Long: `Pauses all nodes at once, saves what each has written and the volumes that it
uses, and resumes them. On a file system that cannot share blocks, most data is
copied beforehand to keep the pause short. The command prints the length of the
pause, and the skew: the time between the pause of the first node and that of
the last.

On several hosts, nodes pause at one moment by the hosts' clocks, and either
all hosts have their part of the snapshot or none has. Volumes on NFS are not
included. Snapshots are stored with the site's state, on each host those of its
own nodes.`,
		Example: "  orrery snapshot group=system\n  orrery snapshot ls\n  orrery snapshot restore 20260730-120000",
		RunE: call.WithSite(func(ctx context.Context, s *site.Site, selectors []string) error {
			taken, err := snapshots.Take(ctx, call.Session, s, selectors, with)
			if err != nil {
				return err
			}
			return reply.Answer(call.Out, taken, func() { printSnapshot(call.Out, s, taken) })
		}),
	}
	call.ReleaseFlag(c)
	call.WithoutFlag(c)
	c.PersistentFlags().AddFlag(c.Flags().Lookup("without")) // the subcommands have it, too
	c.Flags().BoolVar(&with.Memory, "memory", false,
		"also save the memory of virtual machines, to resume from it")
	c.AddCommand(snapshotList(call), snapshotRemove(call), snapshotRestore(call))
	return verb.WithJSON(c, "print JSON")
}

func printSnapshot(out io.Writer, s *site.Site, t *snapshots.Snapshot) {
	fmt.Fprintf(out, "%s: snapshot %s of %s and %s in %.2f s.\n", s.Key(), t.ID, humanize.Plural(len(t.Nodes), "node"),
		humanize.Plural(len(t.Volumes), "volume"), t.Seconds)
	if t.Pause > 0 {
		fmt.Fprintf(out, "Pause: %s. Skew between nodes: %s.\n", milliseconds(t.Pause), milliseconds(t.Skew))
	}
	for _, why := range t.Omitted {
		fmt.Fprintf(out, "Not included: volume %s.\n", why)
	}
	for _, what := range t.Left {
		fmt.Fprintf(out, "Not included: %s.\n", what)
	}
	fmt.Fprintf(out, "\n  orrery snapshot restore %s   restore this state\n", t.ID)
}

func milliseconds(seconds float64) string { return fmt.Sprintf("%.1f ms", seconds*1000) }

func snapshotList(call *verb.Call) *cobra.Command {
	return verb.WithJSON(&cobra.Command{
		Use:     "ls",
		Short:   "List the snapshots of the site",
		Example: "  orrery snapshot ls",
		Args:    cobra.NoArgs,
		RunE: call.WithHosts(func(ctx context.Context, s *site.Site, _ []string) error {
			all, err := snapshots.List(ctx, call.Session, s)
			if err != nil {
				return err
			}
			var unread error
			size := func(taken *snapshots.Snapshot) string {
				size, err := snapshots.Size(ctx, taken)
				unread = cmp.Or(unread, err)
				return atLeast(size.Disk, size.Partial)
			}
			err = table.List(call.Out, all, "ID\tTIME\tWHO\tNODES\tVOLUMES\tPAUSE\tSKEW\tSIZE",
				func(taken *snapshots.Snapshot) []any {
					return []any{taken.ID, taken.Time.Local().Format(time.DateTime), taken.Who, len(taken.Nodes), len(taken.Volumes),
						milliseconds(taken.Pause), milliseconds(taken.Skew), size(taken)}
				})
			return cmp.Or(err, unread)
		}),
	}, "print JSON")
}

// atLeast formats a size. If it is partial, the actual size is larger.
func atLeast(n int64, partial bool) string {
	if partial {
		return ">" + humanize.Bytes(n)
	}
	return humanize.Bytes(n)
}

func snapshotRemove(call *verb.Call) *cobra.Command {
	c := &cobra.Command{
		Use:     "rm ID...",
		Short:   "Delete snapshots",
		Example: "  orrery snapshot rm before-upgrade",
		Args:    cobra.MinimumNArgs(1),
		RunE: call.WithSite(func(ctx context.Context, s *site.Site, ids []string) error {
			return snapshots.Remove(ctx, call.Session, s, ids)
		}),
	}
	call.ProductionFlag(c)
	return c
}

func snapshotRestore(call *verb.Call) *cobra.Command {
	c := &cobra.Command{
		Use:     "restore ID [SELECTOR...]",
		Short:   "Restore nodes and their volumes from a snapshot",
		Example: "  orrery snapshot restore before-upgrade db",
		Long: `Stops the nodes, restores what they had written and their volumes from the
snapshot, starts those that were running then and waits until they are healthy.
What they have written since is lost, but only once all of this has succeeded;
otherwise it is put back. You are asked for the site's name.`,
		Args: cobra.MinimumNArgs(1),
		RunE: call.WithSite(func(ctx context.Context, s *site.Site, args []string) error {
			done, err := snapshots.Restore(ctx, call.Session, s, args[0], args[1:])
			if err != nil {
				return err
			}
			printRestored(call.Out, s.Key(), done)
			return nil
		}),
	}
	call.ProductionFlag(c)
	call.AgreeFlag(c, control.Restore, "the site's `name`, to replace its data without asking")
	return c
}

// printRestored prints what has been restored.
func printRestored(out io.Writer, name string, r *snapshots.Restored) {
	for _, why := range r.Left {
		fmt.Fprintf(out, "Not changed: volume %s.\n", why)
	}
	for _, what := range r.Lost {
		fmt.Fprintf(out, "Not restored: %s.\n", what)
	}
	fmt.Fprintf(out, "%s: %s as in %s.\n", name, humanize.Plural(r.Nodes, "node"), r.What)
}
