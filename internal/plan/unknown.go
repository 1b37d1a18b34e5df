package plan

import (
	"slices"
	"strings"

	"orrery/internal/phrase"
	"orrery/internal/site"
)

// unknown reports whether nothing is known of a host.
func (d *draft) unknown(host string) bool {
	h, ok := d.hosts[host]
	return ok && h.Unknown
}

// certain reports whether it is known where a node is. As long as nothing is known of some host, that is so only of what is there on another, or was until a restore took it down: whatever
// is not may be on that host, and must not be made a second time, since its addresses and volumes have one holder.
func (d *draft) certain(n *site.Node) bool {
	if d.unknown(n.Host) || d.stuck[n.Name] {
		return false
	}
	return !d.blind || len(d.there[n.Name]) > 0 || d.hosts[n.Host].Restored(n.Name, d.hosts)
}

// warnUncertain names the nodes that are left alone for that.
func (d *draft) warnUncertain() {
	var hosts, nodes []string
	for name, h := range d.hosts {
		if h.Unknown {
			hosts = append(hosts, name)
		}
	}
	if len(hosts) == 0 {
		return
	}
	for i := range d.site.Nodes {
		if n := &d.site.Nodes[i]; d.goal.concerns(n.Name) && !d.certain(n) {
			nodes = append(nodes, n.Name)
		}
	}
	slices.Sort(hosts)
	if len(nodes) > 0 {
		d.Warnings = append(d.Warnings, "left alone, because they may be on "+strings.Join(hosts, " or ")+", of which nothing is known: "+phrase.List(nodes, 12))
	}
}
