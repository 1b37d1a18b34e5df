package plan

import (
	"slices"

	"orrery/internal/observe"
	"orrery/internal/phrase"
	"orrery/internal/plan/place"
	"orrery/internal/site"
)

// drained reports whether nodes are kept away from a host.
func (d *draft) drained(host string) bool {
	h, ok := d.hosts[host]
	return ok && h.Drained != nil
}

// barred reports whether a node cannot be where it is declared, since its host is drained. What is there stays until it is moved.
func (d *draft) barred(n *site.Node) bool {
	if !d.drained(n.Host) {
		return false
	}
	_, there := d.hosts[n.Host].Node(n.Name)
	return !there
}

// warnPlaces names the nodes that are left alone because their hosts are drained, and the groups that are to be spread and are not.
func (d *draft) warnPlaces(hosts []observe.Host) {
	for i := range hosts {
		var nodes []string
		for j := range d.site.Nodes {
			if n := &d.site.Nodes[j]; n.Host == hosts[i].Name && d.goal.concerns(n.Name) && d.barred(n) {
				nodes = append(nodes, n.Name)
			}
		}
		if len(nodes) > 0 {
			slices.Sort(nodes)
			d.Warnings = append(d.Warnings, "left alone, because their host "+hosts[i].Name+" is drained (orrery host undrain "+hosts[i].Name+"): "+phrase.List(nodes, 12))
		}
	}
	if d.site.Stage != 0 {
		return
	}
	for _, c := range place.Crowds(d.site, hosts) {
		d.Warnings = append(d.Warnings, c.String()+" (orrery rebalance moves some)")
	}
}
