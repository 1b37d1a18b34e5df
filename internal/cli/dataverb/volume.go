package dataverb

import (
	"cmp"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"orrery/internal/apply"
	"orrery/internal/cli/reply"
	"orrery/internal/cli/screen"
	"orrery/internal/cli/table"
	"orrery/internal/cli/verb"
	"orrery/internal/control"
	"orrery/internal/control/volumes"
	"orrery/internal/problem"
	"orrery/internal/text/sanitize"
)

// Volume returns the command `orrery volume`.
func Volume(call *verb.Call) *cobra.Command {
	c := verb.Group("volume", "Manage volumes and their mirrors", volumeList(call), volumeMirror(call),
		volumeVerify(call), volumeAdopt(call), volumeRemove(call))
	call.WithoutFlag(c)
	c.PersistentFlags().AddFlag(c.Flags().Lookup("without")) // the subcommands have it, too
	return c
}

func volumeList(call *verb.Call) *cobra.Command {
	return verb.WithJSON(&cobra.Command{
		Use:     "ls",
		Short:   "List the volumes, their sizes and the state of their mirrors",
		Example: "  orrery volume ls",
		Args:    cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			all, orphans, err := volumes.List(c.Context(), call.Session)
			if err != nil {
				return err
			}
			err = table.List(call.Out, all, "VOLUME\tNODE\tSIZE\tON DISK\tPATH\tMIRROR\tLAST\tRESULT\tNEXT",
				func(r volumes.Row) []any {
					size, disk := "-", "-"
					if r.There {
						size, disk = atLeast(r.Size.Apparent, r.Size.Partial), atLeast(r.Size.Disk, r.Size.Partial)
					}
					last, result, next := lastMirrored(&r)
					node := r.Node
					if r.Orphan {
						node += " (unused)"
					}
					return []any{r.Volume, node, size, disk, r.Path, cmp.Or(r.Mirror, "-"), last, result, next}
				})
			if err == nil && !reply.IsJSON(call.Out) {
				screen.Orphans(call.Out, orphans)
			}
			return err
		},
	}, "print JSON")
}

// lastMirrored returns when a volume was last mirrored, the result, and when it is due again.
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

func volumeMirror(call *verb.Call) *cobra.Command {
	var o volumes.MirrorOptions
	key := ""
	c := &cobra.Command{
		Use:     "mirror [NAME]",
		Short:   "Copy volumes to their mirrors now",
		Example: "  orrery volume mirror pgdata",
		Long: `Copies new data in volumes to the targets that the site file names, by rsync(1)
over SSH, with a directory for each node. Nothing is ever removed from a
mirror, so data survives even if the original is lost. SSH must not ask for
anything: root on this host needs a key for the target, and the target's host
key must be known. If the login on the target is not root, owners are recorded
beside the files (rsync --fake-super). "orrery up" sets up mirroring on a
schedule (every = "1h"); with several hosts, each mirrors its own volumes.

New files are recognised by size and time. That misses files that have rotted
in the mirror; "orrery volume verify" finds them. --contents reads and compares
everything on both sides and copies what differs from the volume to the mirror.
Make sure first that the volume is the side that is intact.`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(c *cobra.Command, names []string) error {
			o.Names = names
			if key != "" { // as scheduled by a former version
				return control.Unattended(call.Session, key).Run(c.Context(), apply.TriggerMirror, strings.Join(names, ""))
			}
			return volumes.Mirror(c.Context(), call.Session, o, func(m volumes.Mirrored) { fmt.Fprintln(call.Out, m) })
		},
	}
	c.Flags().StringVar(&key, "key", "", "mirror this host's volumes of the site with this key")
	_ = c.Flags().MarkHidden("key")
	c.Flags().BoolVar(&o.Contents, "contents", false,
		"compare contents too: repairs files rotted in the mirror")
	return c
}

func volumeVerify(call *verb.Call) *cobra.Command {
	return verb.WithJSON(&cobra.Command{
		Use:     "verify [NAME]",
		Short:   "Compare all files of volumes with their mirrors",
		Example: "  orrery volume verify",
		Long: `Reads every file of a volume and of its mirror and lists the differences. Files
that exist only in the mirror are ignored: mirrors keep them. In a volume that
is in use, whatever was written since the last mirroring differs.

The exit status is 11 if anything differs.`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(c *cobra.Command, names []string) error {
			differs := map[string]any{}
			err := volumes.Verify(c.Context(), call.Session, names, func(v volumes.Compared) {
				if len(v.Deviations) > 0 {
					differs[v.Volume+"/"+v.Node] = v.Deviations
				}
				if !reply.IsJSON(call.Out) {
					printCompared(call.Out, v)
				}
			})
			if err != nil {
				return err
			}
			if err = reply.Answer(call.Out, differs, func() {}); err == nil && len(differs) > 0 {
				err = problem.Status(problem.Unhealthy)
			}
			return err
		},
	}, "print JSON")
}

// printCompared prints the differences between a volume and its mirror.
func printCompared(out io.Writer, v volumes.Compared) {
	if len(v.Deviations) == 0 {
		fmt.Fprintf(out, "%s of %s: %s is the same\n", v.Volume, v.Node, v.To)
		return
	}
	fmt.Fprintf(out, "%s of %s: %s differs from %s\n", v.Volume, v.Node, v.To, v.From)
	for _, d := range v.Deviations {
		fmt.Fprintf(out, "  %s: %s\n", sanitize.Line(d.Path), d.What) // nodes choose the names of their files
	}
}

func volumeAdopt(call *verb.Call) *cobra.Command {
	c := &cobra.Command{
		Use:   "adopt FORMER NODE [VOLUME...]",
		Short: "Move the volumes of a renamed node to its new name",
		Long: `Moves the volumes of FORMER, a node that was renamed and is no longer declared,
or that no longer uses them, to NODE. Without VOLUME, it moves all volumes that
NODE uses and FORMER had. WAS=IS names a volume that was renamed as well.
FORMER itself is destroyed, as up would do. If NODE has data of its own, it is
kept as NODE.before. NODE must not be running; the next up applies its roles to
the data.`,
		Example: "  orrery volume adopt db0 db",
		Args:    cobra.MinimumNArgs(2),
		RunE: func(c *cobra.Command, args []string) error {
			former, heir := args[0], args[1]
			done, err := volumes.Adopt(c.Context(), call.Session, former, heir, args[2:])
			for _, v := range done {
				fmt.Fprintf(call.Out, "%s now has the data of %s's volume %s, at %s.\n", heir, former, v.Volume, v.To)
				if v.Kept != "" {
					fmt.Fprintf(call.Out, "Its own former data is kept at %s.\n", v.Kept)
				}
			}
			if err != nil {
				return err
			}
			fmt.Fprintf(call.Out, "To start %[1]s with it: orrery up %[1]s\n", heir)
			return nil
		},
	}
	call.ProductionFlag(c)
	return c
}

func volumeRemove(call *verb.Call) *cobra.Command {
	c := &cobra.Command{
		Use:   "rm NAME [NODE...]",
		Short: "Delete a volume that no node uses any more",
		Long: `Deletes the data of an unused volume, as "orrery volume ls" lists them: that of
the former nodes NODE, or of all of them. It always asks for the site's name.
Volumes of declared nodes and of kept releases are in use. Volumes with a path
of their own are not deleted.`,
		Example: "  orrery volume rm pgdata db0",
		Args:    cobra.MinimumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			var former []string
			if len(args) > 1 {
				former = args[1:]
			}
			gone, err := volumes.Remove(c.Context(), call.Session, args[0], former)
			if err != nil {
				return err
			}
			return reply.Answer(call.Out, gone, func() {
				for _, o := range gone {
					fmt.Fprintf(call.Out, "deleted volume %s of %s, at %s\n", o.Volume, cmp.Or(o.Node, "all nodes"), o.Path)
				}
			})
		},
	}
	call.AgreeFlag(c, control.Volumes, "the site's `name`, to delete data without asking")
	return c
}
