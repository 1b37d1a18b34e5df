package cli

import (
	"context"
	"fmt"
	"path/filepath"

	"github.com/spf13/cobra"

	"orrery/internal/backup"
	"orrery/internal/backup/vault"
	"orrery/internal/control"
	"orrery/internal/phrase"
	"orrery/internal/problem"
)

func (a *app) backupRepair() *cobra.Command {
	var from []string
	c := &cobra.Command{
		Use: "repair DIR", Short: "Repair a directory of backups from the site, or from a copy",
		Long: `Reads a whole directory of backups and compares it with its digests. What is damaged or missing is recovered from the intact parts of damaged blocks,
from other copies (--from), and from the site on this host if it still has the data. Data is found by its digest, so a repair never puts anything into a
backup that was not in it. At the end you see which backups are whole, and which files are lost.`,
		Example: "  orrery backup repair /srv/backups\n  orrery backup repair /srv/backups --from /mnt/copy",
		Args:    cobra.ExactArgs(1),
		RunE:    func(c *cobra.Command, args []string) error { return a.repair(c.Context(), args[0], from) },
	}
	c.Flags().StringArrayVar(&from, "from", nil, "also look in this other `file` or directory of backups; may be repeated")
	return c
}

func (a *app) repair(ctx context.Context, dir string, copies []string) error {
	if err := control.NeedRoot(); err != nil {
		return err
	}
	set, err := a.repairSet(dir)
	if err != nil {
		return err
	}
	into, err := writable(dir)
	if err != nil {
		return err
	}
	defer into.Close() //nolint:errcheck // what is written has been synced by then
	shown := newMeter(a.err, "repair")
	repair := &backup.Repair{Into: into, Set: set, Saw: shown.Add}
	for _, text := range copies {
		v, _, err := vault.Open(text)
		if err != nil {
			shown.Close()
			return err
		}
		defer v.Close() //nolint:errcheck // it was only read
		repair.From = append(repair.From, v)
	}
	done, err := repair.Run(ctx)
	shown.Close()
	if err != nil {
		return err
	}
	return a.tellRepaired(into, done)
}

// repairSet is the site that is meant, of which something may be taken; nil: none is.
func (a *app) repairSet(target string) (*backup.Set, error) {
	if _, err := a.Directory(); err != nil {
		fmt.Fprintln(a.err, "orrery: no site is meant (-C DIRECTORY): what is damaged is sought in copies only")
		return nil, nil
	}
	s, h, _, err := a.Target(nil)
	if err != nil {
		return nil, err
	}
	dir, err := a.Absolute()
	if err != nil {
		return nil, err
	}
	target, err = filepath.Abs(target)
	return &backup.Set{Site: s, Dir: dir, Dirs: a.Dirs, Engines: h.Engines, Store: h.Store, Target: target}, err
}

// writable opens a directory of backups that is one already.
func writable(dir string) (*vault.Repository, error) {
	was, err := vault.OpenRepository(dir) // a directory that is none does not become one
	if err != nil {
		return nil, err
	}
	was.Close() //nolint:errcheck // it was only read
	return vault.WriteRepository(dir)
}

func (a *app) tellRepaired(into *vault.Repository, done *backup.Repaired) error {
	a.tellRotten(into, &vault.Checked{Rotten: done.Rotten, Anew: true})
	fmt.Fprintf(a.out, "%s (%s) read, %d of them damaged; %s added.\n", phrase.Count(done.Blocks, "block"), sizeText(done.Bytes), len(done.Rotten), sizeText(done.Wrote))
	lost := 0
	for i := range done.Backups {
		b := &done.Backups[i]
		switch {
		case !b.Is.Whole():
			fmt.Fprintf(a.out, "%s lacks: %s.\n", b.ID, b.Is.String())
			lost++
		case !b.Was.Whole():
			fmt.Fprintf(a.out, "%s is whole again.\n", b.ID)
		default:
			fmt.Fprintf(a.out, "%s is whole.\n", b.ID)
		}
	}
	if lost == 0 {
		return nil
	}
	p := problem.New(problem.Failed, "%d of %s stay damaged", lost, phrase.Count(len(done.Backups), "backup")).At(into.Where())
	return p.Try("name another copy with --from, and the site whose backups they are with -C; orrery restore --file and --node bring back what is whole")
}
