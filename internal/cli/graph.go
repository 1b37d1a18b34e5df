package cli

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"orrery/internal/control/picture"
	"orrery/internal/host"
	"orrery/internal/site"
	"orrery/internal/site/graph"
)

func graphVerb(a *app) *cobra.Command {
	var declared bool
	var file string
	c := &cobra.Command{
		Use:   "graph [SELECTOR...]",
		Short: "Draw the site as an SVG picture",
		Long: `Draws the site as an SVG picture: hosts, networks, and nodes with their roles, addresses and health.
If the site is up, the picture shows how its nodes are now, as "orrery status" does. Otherwise, with --declared, or if you are not root, it
shows what the site file declares. Nodes of other hosts are in the box of the host on which they are; a host that does not answer says so in its box. The picture goes to standard output, or to the file that --output names. Any web browser shows it.`,
		Example: `  orrery graph > site.svg
  orrery graph --output receptors.svg role=receptor`,
		RunE: a.onSite(func(ctx context.Context, s *site.Site, selectors []string) error {
			p, hidden, silent, err := picture.Of(ctx, a.session, s, selectors, declared)
			if err != nil {
				return err
			}
			if silent != nil {
				a.session.Trouble(s.Key(), silent)
			}
			if hidden {
				fmt.Fprintln(a.err, "orrery: only root can see the state of nodes: the picture shows what is declared.")
			}
			if file != "" {
				return host.WriteNamed(file, graph.Draw(p), 0o644)
			}
			_, err = a.out.Write(graph.Draw(p))
			return err
		}),
	}
	c.Flags().BoolVar(&declared, "declared", false, "show what is declared, even if the site is up")
	c.Flags().StringVarP(&file, "output", "o", "", "write the picture to this `file`")
	a.withoutFlag(c)
	return c
}
