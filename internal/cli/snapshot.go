package cli

import (
	"context"
	"fmt"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"orrery/internal/apply/local"
	"orrery/internal/control"
	"orrery/internal/engine/nodedir"
	"orrery/internal/observe"
	"orrery/internal/phrase"
	"orrery/internal/problem"
	"orrery/internal/site"
	"orrery/internal/snapshot"
	"orrery/internal/volume"
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
			s, h, chosen, err := a.Target(args)
			if err != nil {
				return err
			}
			var taken *snapshot.Snapshot
			err = a.Locked(c.Context(), s, h, func(*control.Account) error {
				taken, err = a.takeSnapshot(c.Context(), s, h, chosen)
				return err
			})
			if err != nil {
				return err
			}
			if asJSON {
				return printJSON(a.out, taken)
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

func (a *app) takeSnapshot(ctx context.Context, s *site.Site, h *local.Host, chosen map[string]bool) (*snapshot.Snapshot, error) {
	o := snapshot.Options{Dirs: a.Dirs, Key: s.Key(), Engines: h.Engines, Who: control.Who(), Guard: a.Guard}
	seen, err := h.Observe(ctx)
	if err != nil {
		return nil, err
	}
	for i := range seen.Nodes {
		n := &seen.Nodes[i]
		if n.State == observe.Broken || !a.Meant(n) || chosen != nil && !chosen[n.Name] {
			continue
		}
		r, err := nodedir.Of(a.Dirs, s.Key(), n.ID).Read()
		if err != nil {
			return nil, err
		}
		o.Nodes = append(o.Nodes, r)
	}
	if len(o.Nodes) == 0 {
		return nil, problem.New(problem.Failed, "none of these nodes of %s is on this host", s.Name).Try("orrery up")
	}
	return snapshot.Take(ctx, o)
}

func (a *app) tellSnapshot(s *site.Site, t *snapshot.Snapshot) {
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
			s, err := a.rootLoad()
			if err != nil {
				return err
			}
			all, err := snapshot.List(a.Dirs, s.Key())
			if err != nil {
				return err
			}
			if asJSON {
				return printJSON(a.out, all)
			}
			t := tabwriter.NewWriter(a.out, 0, 0, 2, ' ', 0)
			fmt.Fprintln(t, "ID\tTIME\tWHO\tNODES\tVOLUMES\tPAUSE\tSKEW\tSIZE")
			for _, each := range all {
				size, err := volume.SizeOf(c.Context(), each.Dir)
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

// rootLoad loads the site for a verb that looks at what only root may see.
func (a *app) rootLoad() (*site.Site, error) {
	if err := control.NeedRoot(); err != nil {
		return nil, err
	}
	return a.Load()
}

// atLeast writes a size; partial: it is only known to be more than that.
func atLeast(n int64, partial bool) string {
	if partial {
		return ">" + sizeText(n)
	}
	return sizeText(n)
}

// sizeText writes a size for people.
func sizeText(n int64) string {
	const units = "KMGTP"
	if n < 1024 {
		return fmt.Sprintf("%d B", n)
	}
	size, unit := float64(n)/1024, 0
	for size >= 1024 && unit < len(units)-1 {
		size, unit = size/1024, unit+1
	}
	return fmt.Sprintf("%.1f %ciB", size, units[unit])
}

func (a *app) snapshotRemove() *cobra.Command {
	c := &cobra.Command{
		Use:   "rm ID...",
		Short: "Delete snapshots",
		Args:  cobra.MinimumNArgs(1),
		RunE: func(c *cobra.Command, ids []string) error {
			s, h, _, err := a.Target(nil)
			if err != nil {
				return err
			}
			return a.Locked(c.Context(), s, h, func(*control.Account) error {
				for _, id := range ids {
					if _, err := snapshot.Open(a.Dirs, s.Key(), id); problem.Exit(err) == int(problem.Usage) {
						return err
					}
				}
				if _, err := a.AskProduction(s, fmt.Sprintf("%s would be removed for good.", phrase.Count(len(ids), "snapshot"))); err != nil {
					return err
				}
				for _, id := range ids {
					if err := snapshot.Remove(a.Dirs, s.Key(), id); err != nil {
						return err
					}
				}
				return nil
			})
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
			s, h, chosen, err := a.Target(args[1:])
			if err != nil {
				return err
			}
			return a.Locked(c.Context(), s, h, func(record *control.Account) error {
				taken, err := snapshot.Open(a.Dirs, s.Key(), args[0])
				if err != nil {
					return err
				}
				r := &restoring{app: a, site: s, host: h, record: record, from: taken, what: "snapshot " + taken.ID, chosen: chosen}
				if err := r.check(c.Context()); err != nil {
					return err
				}
				if err := a.askRestore(s, taken, len(r.nodes)); err != nil {
					return err
				}
				return r.run(c.Context())
			})
		},
	}
	a.productionFlag(c)
	a.consent.flag(c, control.Restore, "the `name` of the site whose data is replaced, so that you are not asked for it")
	return c
}

func (a *app) askRestore(s *site.Site, taken *snapshot.Snapshot, nodes int) error {
	why := fmt.Sprintf("What %s of %s and their volumes have written since %s would be lost.", phrase.Count(nodes, "node"), s.Name, taken.Time.Local().Format(time.DateTime))
	if _, err := a.Asker.Ask(control.Question{About: control.Restore, Site: s.Name, Why: why}); err != nil {
		return err
	}
	_, err := a.AskProduction(s, why)
	return err
}

// done says what has been restored.
func (r *restoring) done() {
	for _, why := range r.left {
		fmt.Fprintf(r.out, "Left as it is: volume %s.\n", why)
	}
	for _, what := range r.lost {
		fmt.Fprintf(r.out, "Not put back: %s.\n", what)
	}
	fmt.Fprintf(r.out, "%s: %s as in %s.\n", r.site.Name, phrase.Count(len(r.nodes), "node"), r.what)
}
