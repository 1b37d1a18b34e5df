package nodeverb

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/spf13/cobra"

	"orrery/internal/cli/reply"
	"orrery/internal/cli/table"
	"orrery/internal/cli/verb"
	"orrery/internal/control/nodes"
	"orrery/internal/site"
	"orrery/internal/text/humanize"
)

// Journal returns the command `orrery journal`.
func Journal(call *verb.Call) *cobra.Command {
	var steps bool
	var runs int
	c := &cobra.Command{
		Use:   "journal",
		Short: "Show who did what to this site, when, and how it ended",
		Example: `  orrery journal
  orrery journal --json`,
		Args: cobra.NoArgs,
		RunE: call.WithRunningHosts(func(ctx context.Context, s *site.Site, _ []string) error {
			h, err := nodes.ReadHistory(ctx, call.Session, s, runs)
			if err != nil {
				return err
			}
			for _, name := range slices.Sorted(maps.Keys(h.Damaged)) {
				bad := h.Damaged[name]
				fmt.Fprintf(call.Err, "orrery: host %s: skipped %s of its journal that cannot be read: %s.\n", name,
					humanize.Plural(len(bad), "line"), humanize.List(bad, 8))
			}
			return errors.Join(reply.Answer(call.Out, h.Entries, func() { table.Journal(call.Out, h.Entries, steps) }), h.Silent)
		}),
	}
	c.Flags().BoolVar(&steps, "steps", false, "show all steps, not only those that failed")
	c.Flags().IntVarP(&runs, "runs", "n", 20, "how many runs to show; 0: all")
	call.WithoutFlag(c)
	return verb.WithJSON(c, "print JSON")
}
