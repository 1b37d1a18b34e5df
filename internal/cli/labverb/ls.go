package labverb

import (
	"errors"
	"fmt"
	"path/filepath"

	"github.com/spf13/cobra"

	"orrery/internal/cli/reply"
	"orrery/internal/cli/table"
	"orrery/internal/cli/verb"
	"orrery/internal/control/lab"
	"orrery/internal/lab/bundle"
)

func list(call *verb.Call) *cobra.Command {
	return verb.WithJSON(&cobra.Command{
		Use:   "ls [DIR]",
		Short: "List the bundles of this host",
		Args:  cobra.MaximumNArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			dir := lab.Bundles(call.Session)
			if len(args) == 1 {
				dir = args[0]
			}
			heads, err := bundle.List(dir)
			if heads == nil {
				heads = []bundle.Head{}
			}
			if len(heads) == 0 && !reply.Wanted(call.Out) {
				fmt.Fprintf(call.Out, "No bundles in %s. orrery lab run makes one.\n", dir)
				return err
			}
			return errors.Join(table.List(call.Out, heads, "BUNDLE\tBEGAN\tWHO\tROUNDS\tSTATE\tTITLE", func(h bundle.Head) []any {
				return []any{h.ID, table.Minute(h.Began), h.Who, max(0, h.Rounds-1), lab.State(h, filepath.Join(dir, h.ID)), h.Title}
			}), err)
		},
	}, "print JSON")
}
