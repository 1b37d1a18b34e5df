package cli

import (
	"cmp"
	"fmt"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"orrery/internal/cli/reply"
	"orrery/internal/control/volumes"
	"orrery/internal/phrase"
	"orrery/internal/problem"
	"orrery/internal/visible"
)

func (a *app) volumeVerb() *cobra.Command {
	c := &cobra.Command{
		Use: "volume", Short: "Manage persistent data of nodes, and its mirrors",
		Args: someVerb, RunE: func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(a.volumeList(), a.volumeMirror(), a.volumeVerify(), a.volumeAdopt())
	return c
}

func (a *app) volumeList() *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use:   "ls",
		Short: "List the volumes, their sizes and the state of their mirrors",
		Args:  cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			rows, orphans, err := volumes.List(c.Context(), &a.Session)
			if err != nil {
				return err
			}
			if asJSON {
				return reply.JSON(a.out, rows)
			}
			t := tabwriter.NewWriter(a.out, 0, 0, 2, ' ', 0)
			fmt.Fprintln(t, "VOLUME\tNODE\tSIZE\tON DISK\tPATH\tMIRROR\tLAST\tRESULT\tNEXT")
			for _, r := range rows {
				size, disk := "-", "-"
				if r.There {
					size, disk = atLeast(r.Size.Apparent, r.Size.Partial), atLeast(r.Size.Disk, r.Size.Partial)
				}
				last, result, next := lastMirrored(&r)
				node := r.Node
				if r.Orphan {
					node += " (unused)"
				}
				fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n", r.Volume, node, size, disk, r.Path, cmp.Or(r.Mirror, "-"), last, result, next)
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

// lastMirrored says when the mirror was made last, how that went, and when it is due again.
func lastMirrored(r *volumes.Row) (last, result, next string) {
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

func (a *app) volumeMirror() *cobra.Command {
	var o volumes.MirrorOptions
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
			o.Names = names
			return volumes.Mirror(c.Context(), &a.Session, o, func(m volumes.Mirrored) {
				fmt.Fprintf(a.out, "%s of %s: %s sent to %s in %.1f s\n", m.Volume, m.Node, phrase.Bytes(m.Bytes), m.To, m.Seconds)
			})
		},
	}
	c.Flags().BoolVar(&o.Contents, "contents", false, "compare contents instead of sizes and times, which repairs files that rotted in the mirror")
	return c
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
			differs := map[string]any{}
			err := volumes.Verify(c.Context(), &a.Session, names, func(v volumes.Compared) {
				if len(v.Deviations) > 0 {
					differs[v.Volume+"/"+v.Node] = v.Deviations
				}
				if !asJSON {
					a.tellCompared(v)
				}
			})
			if err != nil {
				return err
			}
			if asJSON {
				err = reply.JSON(a.out, differs)
			}
			if err == nil && len(differs) > 0 {
				err = problem.Status(problem.Unhealthy)
			}
			return err
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return c
}

// tellCompared says what of a volume is not as in its mirror.
func (a *app) tellCompared(v volumes.Compared) {
	if len(v.Deviations) == 0 {
		fmt.Fprintf(a.out, "%s of %s: %s is the same\n", v.Volume, v.Node, v.To)
		return
	}
	fmt.Fprintf(a.out, "%s of %s: %s differs from %s\n", v.Volume, v.Node, v.To, v.From)
	for _, d := range v.Deviations {
		fmt.Fprintf(a.out, "  %s: %s\n", visible.Line(d.Path), d.What) // nodes name their files
	}
}
