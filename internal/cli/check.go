package cli

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"orrery/internal/phrase"
	"orrery/internal/site"
	"orrery/internal/site/spec"
)

func (a *app) checkVerb() *cobra.Command {
	return &cobra.Command{
		Use:   "check",
		Short: "Report every mistake in the site directory: where it is and how to fix it",
		Args:  cobra.NoArgs,
		RunE: a.onSite(func(_ context.Context, s *site.Site, _ []string) error {
			maker := spec.NewMaker(s)
			for i := range s.Nodes {
				if _, err := maker.Node(&s.Nodes[i]); err != nil {
					return err // a template that cannot be rendered
				}
			}
			counts := map[string]any{"site": s.Name, "nodes": len(s.Nodes), "roles": len(s.Roles), "networks": len(s.Networks)}
			return a.answer(counts, func() {
				fmt.Fprintf(a.out, "%s: %s, %s, %s: no mistakes.\n", s.Name,
					phrase.Count(len(s.Nodes), "node"), phrase.Count(len(s.Roles), "role"), phrase.Count(len(s.Networks), "network"))
			})
		}),
	}
}
