package plan

import (
	"fmt"

	"orrery/internal/observe"
	"orrery/internal/site"
)

// removeStrays plans the removal of nodes that are on a host but belong on another host or nowhere,
// and of networks that none of the host's declared nodes uses. With a selection, it leaves
// everything else alone.
func (d *sitePlanner) removeStrays(h *observe.Host, here []*site.Node, home map[string]string) {
	all := d.goal.Nodes == nil
	ids := map[int]bool{}
	for _, n := range here {
		ids[n.ID] = d.goal.selects(n.Name)
	}
	used := d.networks.usedNetworks(here)
	for i := range h.Nodes {
		n := &h.Nodes[i]
		host, declared := home[n.Name]
		switch {
		case host == h.Name:
		case declared && (d.isUnknown(host) || d.isDrained(host)): // it stays here until that host can take it
		case declared && d.goal.selects(n.Name):
			d.removeNode(h, n, "moves to host "+host)
			d.Warnings = append(d.Warnings,
				fmt.Sprintf("node %s is recreated on host %s, and its data on host %s is deleted; orrery move %s --to %s keeps it",
					n.Name, host, h.Name, n.Name, host))
		case !declared && all:
			d.removeNode(h, n, "no longer declared")
		case !declared && ids[n.ID]:
			d.removeNode(h, n, "no longer declared, and its id is needed")
		}
	}
	for i := range h.Networks {
		n := &h.Networks[i].Network
		if !all || used[n.Name] {
			continue
		}
		why := "no longer declared"
		if _, declared := d.site.Network(n.Name); declared {
			why = "no node of this host uses it any more"
		}
		d.frees.addNetwork(h, n, d.removeNetwork(h, n, why, nil))
	}
	if all && h.Names != "" && len(here) == 0 {
		var gone []int
		for _, s := range d.Steps {
			if s.Host == h.Name && s.Kind == DestroyNode {
				gone = append(gone, s.N)
			}
		}
		d.forgetNames(h, "no node is on this host any more", gone)
	}
}
