package siteverb

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"orrery/internal/cli/reply"
	"orrery/internal/cli/verb"
	"orrery/internal/site"
	"orrery/internal/site/inventory"
	"orrery/internal/site/selector"
)

// Query returns the command `orrery query`.
func Query(call *verb.Call) *cobra.Command {
	return verb.WithJSON(&cobra.Command{
		Use:     "query [SELECTOR...]",
		Short:   "Print the names of the nodes that a selector matches",
		Example: `  orrery query 'role=receptor and not host=sv1'`,
		RunE: call.WithSite(func(_ context.Context, s *site.Site, args []string) error {
			nodes, err := selector.Select(s, args...)
			if err != nil {
				return err
			}
			all := []any{}
			for _, n := range nodes {
				all = append(all, inventory.HostVars(s, n))
			}
			return reply.Answer(call.Out, all, func() {
				for _, n := range nodes {
					fmt.Fprintln(call.Out, n.Name)
				}
			})
		}),
	}, "print everything declared for the nodes, as JSON")
}
