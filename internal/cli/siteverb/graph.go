package siteverb

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"orrery/internal/cli/verb"
	"orrery/internal/control/status"
	"orrery/internal/host"
	"orrery/internal/site"
	"orrery/internal/site/graph"
)

// Graph returns the command `orrery graph`.
func Graph(call *verb.Call) *cobra.Command {
	var declared bool
	var file string
	c := &cobra.Command{
		Use:   "graph [SELECTOR...]",
		Short: "Draw the site as an SVG picture",
		Long: `Draws the site as an SVG picture: hosts, networks, and nodes with their roles,
addresses and health. If the site is up, the picture shows the current state of
its nodes, as "orrery status" does. Otherwise, with --declared, or if you are
not root, it shows what the site file declares. Nodes are in the box of their
host, which says if the host does not answer. The picture goes to standard
output, or to the file that --output names. Any web browser shows it.`,
		Example: `  orrery graph > site.svg
  orrery graph --output receptors.svg role=receptor`,
		RunE: call.WithRunning(func(ctx context.Context, s *site.Site, selectors []string) error {
			p, hidden, silent, err := status.Draw(ctx, call.Session, s, selectors, declared)
			if err != nil {
				return err
			}
			if silent != nil {
				call.Session.Trouble(s.Key(), silent)
			}
			if hidden {
				fmt.Fprintln(call.Err, "orrery: only root can see the state of nodes: the picture shows what is declared.")
			}
			if file != "" {
				return host.WriteNamed(file, graph.Draw(p), 0o644)
			}
			_, err = call.Out.Write(graph.Draw(p))
			return err
		}),
	}
	c.Flags().BoolVar(&declared, "declared", false, "show what is declared, even if the site is up")
	c.Flags().StringVarP(&file, "output", "o", "", "write the picture to this `file`")
	call.WithoutFlag(c)
	return c
}
