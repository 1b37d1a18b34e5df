package cli

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strconv"

	"github.com/spf13/cobra"

	"orrery/internal/control"
	"orrery/internal/control/register"
	"orrery/internal/host"
	"orrery/internal/site"
	"orrery/internal/site/graph"
	"orrery/internal/site/selector"
)

func (a *app) graphVerb() *cobra.Command {
	var declared bool
	var file string
	c := &cobra.Command{
		Use:   "graph [SELECTOR...]",
		Short: "Draw the site as an SVG picture",
		Long: `Draws the site as an SVG picture: hosts, networks, and nodes with their roles, addresses and health.
If the site is up, the picture shows how its nodes are now, as "orrery status" does. Otherwise, with --declared, or if you are not root, it
shows what the site file declares. The picture goes to standard output, or to the file that --output names. Any web browser shows it.`,
		Example: `  orrery graph > site.svg
  orrery graph --output receptors.svg role=receptor`,
		RunE: func(c *cobra.Command, args []string) error {
			s, err := a.Load()
			if err != nil {
				return err
			}
			nodes, err := selector.Select(s, args...)
			if err != nil {
				return err
			}
			p := graph.Picture{Site: s, Nodes: nodes, Host: hostName(s)}
			if up := slices.ContainsFunc(a.SitesUp(), func(m register.Marker) bool { return m.Site == s.Name && m.Twin == s.Twin }); up && !declared {
				if os.Geteuid() != 0 {
					fmt.Fprintln(a.err, "orrery: only root can see how nodes are: the picture shows what is declared.")
				} else if err = a.see(c.Context(), &p, args); err != nil {
					return err
				}
			}
			if file != "" {
				return host.WriteFile(host.File{Path: file, Content: graph.Draw(p), Mode: 0o644})
			}
			_, err = a.out.Write(graph.Draw(p))
			return err
		},
	}
	c.Flags().BoolVar(&declared, "declared", false, "show what is declared, even if the site is up")
	c.Flags().StringVarP(&file, "output", "o", "", "write the picture to this `file`")
	return c
}

// hostName gives the host of nodes that name none: the only one that there is.
func hostName(s *site.Site) string {
	switch len(s.Hosts) {
	case 0:
		return "local"
	case 1:
		return s.Hosts[0].Name
	}
	return ""
}

// see puts into a picture how the nodes are that are live.
func (a *app) see(ctx context.Context, p *graph.Picture, selectors []string) error {
	r, err := a.Status(ctx, p.Site, selectors)
	if err != nil {
		return err
	}
	p.Nodes, p.Seen = nil, map[string]graph.Look{}
	for i, each := range r.Nodes {
		look := p.Seen[each.Node]
		if each.Quarantine { // it comes behind the live one
			look.Beside = append(look.Beside, "release "+strconv.Itoa(each.Release)+" in quarantine, "+each.State)
		} else {
			p.Nodes, look = append(p.Nodes, r.Declared(i)), lookOf(each)
		}
		p.Seen[each.Node] = look
	}
	return nil
}

// look gives how a node is, for a picture.
func lookOf(r control.NodeStatus) graph.Look {
	switch {
	case r.State == "absent":
		return graph.Look{Health: graph.Absent, Word: r.State}
	case r.State != "running" && r.Good():
		return graph.Look{Health: graph.Off, Word: r.State}
	case r.State != "running":
		return graph.Look{Health: graph.Bad, Word: r.State, Detail: r.Detail}
	case r.Good() && r.Health == "-":
		return graph.Look{Health: graph.Good, Word: r.State}
	case r.Good():
		return graph.Look{Health: graph.Good, Word: r.Health}
	case r.Health == control.Unhealthy:
		return graph.Look{Health: graph.Bad, Word: r.Health, Detail: r.Detail}
	}
	return graph.Look{Health: graph.Doubtful, Word: r.Health, Detail: r.Detail}
}
