// Package dataverb has the verbs for data: backups, snapshots, volumes and their mirrors.
package dataverb

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"orrery/internal/cli/reply"
	"orrery/internal/cli/table"
	"orrery/internal/cli/verb"
	"orrery/internal/control/backups"
	"orrery/internal/control/routines"
	"orrery/internal/problem"
	"orrery/internal/text/humanize"
)

// Backup returns the command `orrery backup`.
func Backup(call *verb.Call) *cobra.Command {
	o := backups.Options{By: call.Session.Version}
	c := &cobra.Command{
		Use:   "backup [[SELECTOR...] FILE|DIR]",
		Short: "Back up a site, or some of its nodes, to a file or directory",
		Long: `Backs up the site directory, what each node has written, and all volumes except
those on NFS, as they are at one moment. The nodes pause only while the last
changes are read. If the target is an existing directory, or its name ends with
"/", it holds many backups and stores what they have in common only once.
Otherwise the target is a single file. If a run was killed, run the same
command to resume.

On several hosts, all of them must answer. The data of a host that is left out
(--without) is not in the backup, and the backup lists it as missing.

Generated secrets and SSH host keys are included only if you say how to encrypt
them.

Without arguments, the backup is taken as [backup] in site.toml says, and
counts as one that was scheduled.`,
		Example: "  orrery backup /srv/backups/\n  orrery backup group=system karoo.orrery --secrets-passphrase-file phrase",
		Args:    cobra.ArbitraryArgs,
		RunE: func(c *cobra.Command, args []string) error {
			if len(args) == 0 {
				return backUpDeclared(c, call)
			}
			last := len(args) - 1
			taken, err := backups.Take(c.Context(), call.Session, args[:last], args[last], o)
			if err != nil {
				return err
			}
			return reply.Answer(call.Out, taken, func() { printTaken(call.Out, taken) })
		},
	}
	f := c.Flags()
	f.BoolVar(&o.Layers, "with-layers", false, "include the layers, so that a restore need not build them")
	f.BoolVar(&o.Snapshots, "snapshots", false, "include the snapshots of the site")
	f.StringArrayVar(&o.Keys, "secrets-to", nil, "encrypt secrets for this age public `key` (repeatable)")
	f.StringVar(&o.Passphrase, "secrets-passphrase-file", "", "encrypt secrets with the passphrase in this `file`")
	call.WithoutFlag(c)
	c.AddCommand(backupList(call), backupVerify(call), backupRepair(call), backupPrune(call))
	return verb.WithJSON(c, "print JSON")
}

// backUpDeclared takes the backup that the site file declares.
func backUpDeclared(c *cobra.Command, call *verb.Call) error {
	if f := firstChanged(c, "with-layers", "snapshots", "secrets-to", "secrets-passphrase-file"); f != "" {
		return problem.New(problem.Usage, "--%s needs a file or directory to back up to", f).
			Try("orrery backup --%s … /srv/backups/; without arguments, [backup] in site.toml decides", f)
	}
	taken, err := routines.BackUp(c.Context(), call.Session)
	if err != nil {
		return err
	}
	return reply.Answer(call.Out, taken, func() { printTaken(call.Out, taken) })
}

// firstChanged returns the first of the flags that was given, or "".
func firstChanged(c *cobra.Command, names ...string) string {
	i := slices.IndexFunc(names, c.Flags().Changed)
	if i < 0 {
		return ""
	}
	return names[i]
}

func printTaken(out io.Writer, b *backups.Taken) {
	fmt.Fprintf(out, "%s: %s and %s, %s, in %s (%.1f s; %s read, %s added).\n", b.Name, humanize.Plural(b.Nodes, "node"),
		humanize.Plural(b.Volumes, "volume"), humanize.Bytes(b.Bytes), b.Where, b.Took, humanize.Bytes(b.Read),
		humanize.Bytes(b.Added))
	if b.Blocks > 0 {
		fmt.Fprintf(out, "It shares %s (%s) with earlier backups; %d of them (%s) were read again and are whole.\n",
			humanize.Plural(b.Blocks, "block"), humanize.Bytes(b.Shared), b.Reread, humanize.Bytes(b.Checked))
	}
	if b.Mended {
		fmt.Fprintln(out, "The damaged blocks that this backup needs were written again.")
	}
	if b.Pause > 0 {
		fmt.Fprintf(out, "The nodes were paused for %s.\n", milliseconds(b.Pause))
	}
	for _, why := range b.Left {
		fmt.Fprintf(out, "Not included: %s.\n", why)
	}
	fmt.Fprintf(out, "\n  orrery restore %s   restore it, on any host\n", b.Title)
}

func backupList(call *verb.Call) *cobra.Command {
	return verb.WithJSON(&cobra.Command{
		Use: "ls FILE|DIR", Short: "List the backups in a directory or file",
		Example: "  orrery backup ls /srv/backups",
		Args:    cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			all, err := backups.List(args[0])
			if err != nil {
				return err
			}
			return table.List(call.Out, all, "ID\tSITE\tTIME\tHOST\tWHO\tNODES\tVOLUMES\tSIZE\tWITH",
				func(b backups.Backup) []any {
					var with []string
					if b.Layers {
						with = append(with, "layers")
					}
					if b.Secrets {
						with = append(with, "secrets")
					}
					return []any{b.ID, b.Site, b.Time.Local().Format(time.DateTime), b.Host, b.Who, b.Nodes, b.Volumes,
						humanize.Bytes(b.Bytes),
						cmp.Or(strings.Join(with, ", "), "-")}
				})
		},
	}, "print JSON")
}

func backupVerify(call *verb.Call) *cobra.Command {
	return &cobra.Command{
		Use: "verify FILE|DIR[@ID]", Short: "Read one or all backups, and compare them with their digests",
		Example: `  orrery backup verify /srv/backups
  orrery backup verify karoo.orb`,
		Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			var failed error
			err := backups.Verify(c.Context(), call.Session, args[0], func(id string, damage error) {
				if damage != nil {
					fmt.Fprintf(call.Out, "%s is damaged.\n", id)
					verb.PrintError(call.Err, damage)
					failed = damage
					return
				}
				fmt.Fprintf(call.Out, "%s is whole.\n", id)
			})
			if err != nil {
				return err
			}
			return verb.OnlyExitStatus(failed)
		},
	}
}

func backupPrune(call *verb.Call) *cobra.Command {
	keep := 0
	c := &cobra.Command{
		Use: "prune DIR", Short: "Remove all but the latest backups of each site",
		Example: "  orrery backup prune --keep 7 /srv/backups",
		Args:    cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			gone, freed, err := backups.Prune(args[0], keep)
			for _, id := range gone {
				fmt.Fprintf(call.Out, "%s\n", id)
			}
			if err != nil {
				return err
			}
			fmt.Fprintf(call.Out, "%s removed, %s freed.\n", humanize.Plural(len(gone), "backup"), humanize.Bytes(freed))
			return nil
		},
	}
	c.Flags().IntVar(&keep, "keep", 0, "how many backups of each site to keep (at least 1)")
	return c
}

func backupRepair(call *verb.Call) *cobra.Command {
	var from []string
	c := &cobra.Command{
		Use: "repair DIR", Short: "Repair a directory of backups from the site, or from a copy",
		Long: `Reads a whole directory of backups and compares it with its digests. Damaged or
missing data is recovered from the intact parts of damaged blocks, from other
copies (--from), and from the site if its hosts still have the data. Data is
found by its digest, so a repair never puts anything into a backup that was not
in it. At the end it lists which backups are whole, and which files are lost.`,
		Example: "  orrery backup repair /srv/backups\n  orrery backup repair /srv/backups --from /mnt/copy",
		Args:    cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			done, err := backups.Repair(c.Context(), call.Session, args[0], from)
			if err != nil {
				return err
			}
			return printRepaired(call.Out, done)
		},
	}
	c.Flags().StringArrayVar(&from, "from", nil, "also use this backup `file` or directory (repeatable)")
	call.WithoutFlag(c)
	return c
}

// printRepaired prints for each backup whether it is whole.
func printRepaired(out io.Writer, done *backups.Repaired) error {
	fmt.Fprintf(out, "%s (%s) read, %d of them damaged; %s added.\n", humanize.Plural(done.Blocks, "block"),
		humanize.Bytes(done.Bytes), len(done.Corrupt), humanize.Bytes(done.BytesWritten))
	for i := range done.Backups {
		b := &done.Backups[i]
		switch {
		case !b.After.IsEmpty():
			fmt.Fprintf(out, "%s lacks: %s.\n", b.ID, b.After.String())
		case !b.Before.IsEmpty():
			fmt.Fprintf(out, "%s is whole again.\n", b.ID)
		default:
			fmt.Fprintf(out, "%s is whole.\n", b.ID)
		}
	}
	lost := done.Damaged()
	if lost == 0 {
		return nil
	}
	p := problem.New(problem.Failed, "%d of %s are still damaged", lost, humanize.Plural(len(done.Backups), "backup")).
		At(done.Where)
	return p.Try("name another copy with --from, and the site of the backups with -C; " +
		"orrery restore --file and --node restore the intact parts")
}
