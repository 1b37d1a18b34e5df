package sites

import (
	"context"

	"orrery/internal/control"
	"orrery/internal/observe"
	"orrery/internal/site"
)

// Count returns how many nodes of a site or twin are on this machine, and how many of them run.
func Count(ctx context.Context, c *control.Session, s *site.Site) (all, running int) {
	f, err := c.HostsWithoutReleases(ctx, s)
	if err != nil {
		return 0, 0
	}
	nodes, _ := f.All[0].Nodes.List(ctx) // on error the nodes are not counted
	for i := range nodes {
		if nodes[i].State == observe.Running {
			running++
		}
	}
	return len(nodes), running
}
