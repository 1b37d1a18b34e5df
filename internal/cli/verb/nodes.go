package verb

import (
	"context"
	"fmt"
	"io"
	"text/tabwriter"

	"orrery/internal/apply"
	"orrery/internal/cli/reply"
	"orrery/internal/cli/screen"
	"orrery/internal/cli/table"
	"orrery/internal/control"
	"orrery/internal/control/status"
	"orrery/internal/site"
)

// ShowNodes prints the state of nodes that have just been brought up.
func ShowNodes(ctx context.Context, session *control.Session, out io.Writer, s *site.Site, selectors []string) error {
	r, err := status.Read(ctx, session, s, selectors)
	if err != nil {
		return err
	}
	return table.Nodes(out, r.Nodes, false, screen.Width(out))
}

// PrintUp prints the state of the nodes of a site that was brought up, if err is nil.
func PrintUp(ctx context.Context, session *control.Session, out io.Writer, s *site.Site, selectors []string,
	result *apply.Result, err error) error {
	if err != nil {
		return err
	}
	if result == nil && !reply.IsJSON(out) {
		fmt.Fprintf(out, "%s is up: nothing to do.\n", s.Key())
		return nil
	}
	if err := ShowNodes(ctx, session, out, s, selectors); err != nil {
		return err
	}
	printNextSteps(out, s)
	return nil
}

// printNextSteps prints what a user may want to do next.
func printNextSteps(out io.Writer, s *site.Site) {
	first := "NODE"
	if len(s.Nodes) > 0 {
		first = s.Nodes[0].Name
	}
	orrery, down := "orrery", "orrery down"
	end := "destroy all nodes (volumes are kept)"
	if s.Twin != "" {
		orrery += " --twin " + s.Twin
		down, end = "orrery twin destroy "+s.Twin, "destroy the twin"
	}
	t := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintf(t, "\n  %s shell %s\topen a terminal in a node\n  %s status\tshow the state of the nodes\n  %s\t%s\n", orrery, first,
		orrery, down, end)
	_ = t.Flush()
}
