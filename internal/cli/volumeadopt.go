package cli

import (
	"fmt"

	"github.com/spf13/cobra"

	"orrery/internal/control/volumes"
)

func (a *app) volumeAdopt() *cobra.Command {
	c := &cobra.Command{
		Use:   "adopt FORMER NODE [VOLUME...]",
		Short: "Give a node the data of a node that was renamed",
		Long: `Gives NODE the volumes of FORMER, a node that was renamed and is no longer declared, or that no longer uses them. Without VOLUME, it takes all volumes
that NODE uses and FORMER had. WAS=IS names a volume that was renamed as well. FORMER itself is destroyed, as up would do. If NODE has data of its own, it
is kept as NODE.before. NODE must not be running; the next up applies its roles to the data.`,
		Example: "  orrery volume adopt db0 db",
		Args:    cobra.MinimumNArgs(2),
		RunE: func(c *cobra.Command, args []string) error {
			former, heir := args[0], args[1]
			done, err := volumes.Adopt(c.Context(), &a.Session, former, heir, args[2:])
			for _, v := range done {
				fmt.Fprintf(a.out, "%s has the data of %s's volume %s, at %s.\n", heir, former, v.Volume, v.To)
				if v.Kept != "" {
					fmt.Fprintf(a.out, "What it had itself is kept at %s.\n", v.Kept)
				}
			}
			if err != nil {
				return err
			}
			fmt.Fprintf(a.out, "orrery up brings %s up with it.\n", heir)
			return nil
		},
	}
	a.productionFlag(c)
	return c
}
