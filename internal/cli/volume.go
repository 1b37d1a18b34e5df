package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"orrery/internal/control"
	"orrery/internal/hook"
	"orrery/internal/host"
	"orrery/internal/plan"
	"orrery/internal/problem"
	"orrery/internal/site"
	"orrery/internal/site/spec"
	"orrery/internal/visible"
	"orrery/internal/volume"
)

func (a *app) volumeVerb() *cobra.Command {
	c := &cobra.Command{
		Use: "volume", Short: "Manage persistent data of nodes, and its mirrors",
		Args: someVerb, RunE: func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(a.volumeList(), a.volumeMirror(), a.volumeVerify(), a.volumeAdopt())
	return c
}

// A volumeRow is one directory of a volume.
type volumeRow struct {
	Volume string           `json:"volume"`
	Node   string           `json:"node"`
	Path   string           `json:"path"`
	Size   volume.Size      `json:"size"`
	There  bool             `json:"there"`
	Mirror string           `json:"mirror,omitempty"`
	Last   *volume.Mirrored `json:"last,omitempty"`
	Next   time.Time        `json:"next,omitzero"`
	Idle   string           `json:"idle,omitempty"`   // why nothing mirrors it by itself, although the site file says so
	Orphan bool             `json:"orphan,omitempty"` // no node uses it
}

func (a *app) volumeList() *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use:   "ls",
		Short: "List the volumes, their sizes and the state of their mirrors",
		Args:  cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if err := control.NeedRoot(); err != nil {
				return err
			}
			s, h, _, err := a.Target(nil)
			if err != nil {
				return err
			}
			rows, err := a.volumeRows(c.Context(), s)
			if err != nil {
				return err
			}
			hosts, err := a.Seen(c.Context(), h)
			if err != nil {
				return err
			}
			orphans := plan.Orphans(s, &hosts[0], h.Releases)
			rows = append(rows, orphanRows(c.Context(), orphans)...)
			if asJSON {
				return printJSON(a.out, rows)
			}
			t := tabwriter.NewWriter(a.out, 0, 0, 2, ' ', 0)
			fmt.Fprintln(t, "VOLUME\tNODE\tSIZE\tON DISK\tPATH\tMIRROR\tLAST\tRESULT\tNEXT")
			for _, r := range rows {
				size, disk := "-", "-"
				if r.There {
					size, disk = more(r.Size)+sizeText(r.Size.Apparent), sizeOnDisk(r.Size)
				}
				last, result, next := r.mirrored()
				node := r.Node
				if r.Orphan {
					node += " (unused)"
				}
				fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n", r.Volume, node, size, disk, r.Path, dash(r.Mirror), last, result, next)
			}
			if err := t.Flush(); err != nil {
				return err
			}
			tellOrphans(a.out, orphans)
			return nil
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return c
}

func orphanRows(ctx context.Context, orphans []plan.Orphan) []volumeRow {
	var rows []volumeRow
	for _, o := range orphans {
		r := volumeRow{Volume: o.Volume, Node: cmp.Or(o.Node, volume.ForAll), Path: o.Path, Orphan: true}
		r.measure(ctx)
		rows = append(rows, r)
	}
	return rows
}

// mirrored says when the mirror was made last, how that went, and when it is due again.
func (r volumeRow) mirrored() (last, result, next string) {
	last, result, next = "-", "-", "-"
	if r.Mirror != "" {
		last = "never"
	}
	if r.Last != nil {
		last, result = time.Since(r.Last.At).Round(time.Second).String()+" ago", "done"
		if r.Last.Problem != "" {
			result = "failed"
			if !r.Last.Good.IsZero() {
				result += ", last good " + time.Since(r.Last.Good).Round(time.Second).String() + " ago"
			}
		}
	}
	switch {
	case r.Idle != "":
		next = r.Idle
	case r.Next.IsZero():
	case time.Now().After(r.Next):
		next = "overdue"
	default:
		next = "in " + time.Until(r.Next).Round(time.Second).String()
	}
	return last, result, next
}

func dash(text string) string {
	if text == "" {
		return "-"
	}
	return text
}

func (a *app) volumeRows(ctx context.Context, s *site.Site) ([]volumeRow, error) {
	mirrors, err := a.Mirrors(s)
	if err != nil {
		return nil, err
	}
	went, err := volume.ReadMirrored(a.Dirs, s.Key())
	if err != nil {
		return nil, err
	}
	rows := []volumeRow{}
	seen := map[string]bool{}
	maker := spec.NewMaker(s)
	for i := range s.Nodes {
		spelt, err := maker.Node(&s.Nodes[i])
		if err != nil {
			return nil, err
		}
		for _, m := range spelt.Mounts {
			r := volumeRow{Volume: m.Volume, Node: spelt.Name, Path: volume.Path(a.Dirs, s.Key(), spelt.Name, m)}
			if seen[r.Path] {
				continue
			}
			seen[r.Path] = true
			if m.Shared {
				r.Node = volume.ForAll
			}
			r.measure(ctx)
			r.look(mirrors, went, s.Key())
			rows = append(rows, r)
		}
	}
	return rows, nil
}

func (r *volumeRow) measure(ctx context.Context) {
	size, err := volume.SizeOf(ctx, r.Path)
	r.Size, r.There = size, err == nil
}

func (r *volumeRow) look(mirrors []volume.Mirror, went []volume.Mirrored, key string) {
	for _, m := range mirrors {
		if m.From != r.Path {
			continue
		}
		r.Mirror = m.To
		for _, w := range went {
			if w.Volume == m.Volume && w.Node == m.Node {
				r.Last = &w
			}
		}
		if m.Every == 0 {
			continue
		}
		var last time.Time
		if r.Last != nil {
			last = r.Last.At
		}
		r.Next, r.Idle = volume.NextRun(key, m.Volume, m.Every, last, time.Now())
	}
}

// chosenMirrors gives those of the volumes that are named, or all.
func (a *app) chosenMirrors(s *site.Site, names []string) ([]volume.Mirror, error) {
	if s.Twin != "" {
		return nil, problem.New(problem.Refused, "the volumes of a twin are not mirrored: they would go over those of %s", s.Name)
	}
	all, err := a.Mirrors(s)
	if err != nil {
		return nil, err
	}
	var chosen []volume.Mirror
	for _, m := range all {
		if len(names) == 0 || names[0] == m.Volume {
			chosen = append(chosen, m)
		}
	}
	if len(chosen) == 0 {
		what := "no volume that a node uses"
		if len(names) > 0 {
			what = "volume " + names[0] + ", if a node uses it,"
		}
		return nil, problem.New(problem.Usage, "%s has no mirror", what).At("site.toml").Try(`say [volume.NAME] mirror = "user@host:/directory"`)
	}
	return chosen, nil
}

func (a *app) volumeMirror() *cobra.Command {
	contents := false
	c := &cobra.Command{
		Use:   "mirror [NAME]",
		Short: "Copy volumes to their mirrors now",
		Long: `Copies what is new in volumes to the targets that the site file names, by rsync(1) over SSH, with a directory for each node. Nothing is ever removed
from a mirror, so data survives even if the original is lost. SSH must not ask for anything: root on this host needs a key for the target, and the
target's host key must be known. If you log in there as another user than root, owners are recorded beside the files (rsync --fake-super).
Mirroring on a schedule (every = "1h") is set up by "orrery up".

New files are recognised by size and time. That misses files that have rotted in the mirror; "orrery volume verify" finds them. --contents reads and
compares everything on both sides and takes what differs from the volume. Make sure first that the volume is the side that is intact.`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(c *cobra.Command, names []string) error {
			s, err := a.rootLoad()
			if err != nil {
				return err
			}
			chosen, err := a.chosenMirrors(s, names)
			if err != nil {
				return err
			}
			lock, err := volume.LockMirrors(a.Dirs, s.Key(), host.Holder{Who: control.Who(), Pid: os.Getpid(), Since: time.Now(), Command: a.Command})
			if err != nil {
				return err
			}
			defer lock.Release()
			bring := volume.Mirror.Run
			if contents {
				bring = volume.Mirror.Mend
			}
			for _, m := range chosen {
				err = errors.Join(err, a.mirror(c.Context(), s, m, bring))
			}
			return err
		},
	}
	c.Flags().BoolVar(&contents, "contents", false, "compare contents instead of sizes and times, which repairs files that rotted in the mirror")
	return c
}

// mirror brings a mirror up to date, in the one way or the other.
func (a *app) mirror(ctx context.Context, s *site.Site, m volume.Mirror, bring func(volume.Mirror, context.Context) (int64, error)) error {
	r := volume.Mirrored{Volume: m.Volume, Node: m.Node, To: m.To, At: time.Now()}
	sent, err := bring(m, ctx)
	r.Bytes, r.Seconds = sent, time.Since(r.At).Seconds()
	if err != nil {
		r.Problem = err.Error()
		a.Tell(s, hook.Event{Event: site.MirrorFailed, Result: "failed", Why: r.Problem, Volume: m.Volume, Node: m.Node})
	} else {
		fmt.Fprintf(a.out, "%s of %s: %s sent to %s in %.1f s\n", m.Volume, m.Node, sizeText(sent), m.To, r.Seconds)
	}
	return errors.Join(err, r.Note(a.Dirs, s.Key()))
}

func (a *app) volumeVerify() *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use:   "verify [NAME]",
		Short: "Compare all files of volumes with their mirrors",
		Long: `Reads every file of a volume and of its mirror and lists the differences. Files that exist only in the mirror are ignored: mirrors keep them.
The exit status is 11 if anything differs. In a volume that is in use, whatever was written since the last mirroring differs.`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(c *cobra.Command, names []string) error {
			s, err := a.rootLoad()
			if err != nil {
				return err
			}
			chosen, err := a.chosenMirrors(s, names)
			if err != nil {
				return err
			}
			found := map[string][]volume.Deviation{}
			for _, m := range chosen {
				all, err := m.Verify(c.Context())
				if err != nil {
					return err
				}
				if len(all) > 0 {
					found[m.Volume+"/"+m.Node] = all
				}
				if !asJSON {
					a.tellDeviations(m, all)
				}
			}
			if asJSON {
				err = printJSON(a.out, found)
			}
			if err == nil && len(found) > 0 {
				err = problem.Status(problem.Unhealthy)
			}
			return err
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return c
}

func (a *app) tellDeviations(m volume.Mirror, all []volume.Deviation) {
	if len(all) == 0 {
		fmt.Fprintf(a.out, "%s of %s: %s is the same\n", m.Volume, m.Node, m.To)
		return
	}
	fmt.Fprintf(a.out, "%s of %s: %s differs from %s\n", m.Volume, m.Node, m.To, m.From)
	for _, d := range all {
		fmt.Fprintf(a.out, "  %s: %s\n", visible.Line(d.Path), d.What) // nodes name their files
	}
}
