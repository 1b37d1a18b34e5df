package cli

import (
	"fmt"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"orrery/internal/cli/reply"
	"orrery/internal/control"
	"orrery/internal/control/snapshots"
	"orrery/internal/phrase"
	"orrery/internal/site"
)

func (a *app) snapshotVerb() *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use:   "snapshot [SELECTOR...]",
		Short: "Take a snapshot of nodes at one moment",
		Long: `Pauses all nodes at once, keeps what each has written and the volumes that it uses, and resumes them. On a file system that cannot share blocks, most
data is copied beforehand to keep the pause short. The length of the pause is printed, and so is the skew: the time between the first node that paused
and the last. Volumes on NFS are not included. Snapshots are kept with the state of the site on this host.`,
		Example: "  orrery snapshot group=system\n  orrery snapshot ls\n  orrery snapshot restore 20260730-120000",
		RunE: func(c *cobra.Command, args []string) error {
			s, err := a.Load()
			if err != nil {
				return err
			}
			taken, err := snapshots.Take(c.Context(), &a.Session, s, args)
			if err != nil {
				return err
			}
			if asJSON {
				return reply.JSON(a.out, taken)
			}
			a.tellSnapshot(s, taken)
			return nil
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	a.releaseFlag(c)
	c.AddCommand(a.snapshotList(), a.snapshotRemove(), a.snapshotRestore())
	return c
}

func (a *app) tellSnapshot(s *site.Site, t *snapshots.Snapshot) {
	fmt.Fprintf(a.out, "%s: snapshot %s of %s and %s in %.2f s.\n", s.Name, t.ID, phrase.Count(len(t.Nodes), "node"), phrase.Count(len(t.Volumes), "volume"), t.Seconds)
	if t.Pause > 0 {
		fmt.Fprintf(a.out, "Pause: %s. Skew between nodes: %s.\n", milliseconds(t.Pause), milliseconds(t.Skew))
	}
	for _, why := range t.Omitted {
		fmt.Fprintf(a.out, "Not in it: volume %s.\n", why)
	}
	for _, what := range t.Left {
		fmt.Fprintf(a.out, "Not in it: %s.\n", what)
	}
	fmt.Fprintf(a.out, "\n  orrery snapshot restore %s   put it all back as it was then\n", t.ID)
}

func milliseconds(seconds float64) string { return fmt.Sprintf("%.1f ms", seconds*1000) }

func (a *app) snapshotList() *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use:   "ls",
		Short: "List the snapshots of the site on this host",
		Args:  cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if err := a.Allowed(); err != nil {
				return err
			}
			s, err := a.Load()
			if err != nil {
				return err
			}
			all, err := snapshots.List(&a.Session, s)
			if err != nil {
				return err
			}
			if asJSON {
				return reply.JSON(a.out, all)
			}
			t := tabwriter.NewWriter(a.out, 0, 0, 2, ' ', 0)
			fmt.Fprintln(t, "ID\tTIME\tWHO\tNODES\tVOLUMES\tPAUSE\tSKEW\tSIZE")
			for _, each := range all {
				size, err := snapshots.Size(c.Context(), each)
				if err != nil {
					return err
				}
				fmt.Fprintf(t, "%s\t%s\t%s\t%d\t%d\t%s\t%s\t%s\n", each.ID, each.Time.Local().Format("2006-01-02 15:04:05"), each.Who,
					len(each.Nodes), len(each.Volumes), milliseconds(each.Pause), milliseconds(each.Skew), atLeast(size.Disk, size.Partial))
			}
			return t.Flush()
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return c
}

// atLeast writes a size; partial: it is only known to be more than that.
func atLeast(n int64, partial bool) string {
	if partial {
		return ">" + phrase.Bytes(n)
	}
	return phrase.Bytes(n)
}

func (a *app) snapshotRemove() *cobra.Command {
	c := &cobra.Command{
		Use:   "rm ID...",
		Short: "Delete snapshots",
		Args:  cobra.MinimumNArgs(1),
		RunE: func(c *cobra.Command, ids []string) error {
			s, err := a.Load()
			if err != nil {
				return err
			}
			return snapshots.Remove(c.Context(), &a.Session, s, ids)
		},
	}
	a.productionFlag(c)
	return c
}

func (a *app) snapshotRestore() *cobra.Command {
	c := &cobra.Command{
		Use:   "restore ID [SELECTOR...]",
		Short: "Restore nodes and their volumes from a snapshot",
		Long: `Stops the nodes, restores what they had written and their volumes from the snapshot, starts those that were running then and waits until they are
healthy. What they have written since is lost, but only once all of this has succeeded; otherwise it is put back.
You are asked for the site's name.`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			s, err := a.Load()
			if err != nil {
				return err
			}
			done, err := snapshots.Restore(c.Context(), &a.Session, s, args[0], args[1:])
			if err != nil {
				return err
			}
			a.tellPutBack(s.Name, done)
			return nil
		},
	}
	a.productionFlag(c)
	a.consent.flag(c, control.Restore, "the `name` of the site whose data is replaced, so that you are not asked for it")
	return c
}

// tellPutBack says what has been put back.
func (a *app) tellPutBack(name string, r *snapshots.Restored) {
	for _, why := range r.Left {
		fmt.Fprintf(a.out, "Left as it is: volume %s.\n", why)
	}
	for _, what := range r.Lost {
		fmt.Fprintf(a.out, "Not put back: %s.\n", what)
	}
	fmt.Fprintf(a.out, "%s: %s as in %s.\n", name, phrase.Count(r.Nodes, "node"), r.What)
}
