package cli

import (
	"fmt"

	"github.com/spf13/cobra"

	"orrery/internal/control/backups"
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
		RunE: func(c *cobra.Command, args []string) error {
			done, err := backups.Repair(c.Context(), &a.Session, args[0], from)
			if err != nil {
				return err
			}
			return a.tellRepaired(done)
		},
	}
	c.Flags().StringArrayVar(&from, "from", nil, "also look in this other `file` or directory of backups; may be repeated")
	return c
}

// tellRepaired says of each backup whether it is whole.
func (a *app) tellRepaired(done *backups.Repaired) error {
	fmt.Fprintf(a.out, "%s (%s) read, %d of them damaged; %s added.\n", phrase.Count(done.Blocks, "block"), phrase.Bytes(done.Bytes), len(done.Rotten), phrase.Bytes(done.Wrote))
	for i := range done.Backups {
		b := &done.Backups[i]
		switch {
		case !b.Is.Whole():
			fmt.Fprintf(a.out, "%s lacks: %s.\n", b.ID, b.Is.String())
		case !b.Was.Whole():
			fmt.Fprintf(a.out, "%s is whole again.\n", b.ID)
		default:
			fmt.Fprintf(a.out, "%s is whole.\n", b.ID)
		}
	}
	lost := done.Damaged()
	if lost == 0 {
		return nil
	}
	p := problem.New(problem.Failed, "%d of %s stay damaged", lost, phrase.Count(len(done.Backups), "backup")).At(done.Where)
	return p.Try("name another copy with --from, and the site whose backups they are with -C; orrery restore --file and --node bring back what is whole")
}
