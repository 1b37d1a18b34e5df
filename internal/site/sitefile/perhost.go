package sitefile

import (
	"slices"
	"strings"

	"orrery/internal/problem"
	"orrery/internal/site"
)

// eachHost is the value of the key per of nodes that each host has.
const eachHost = "host"

// perHost returns the nodes of a declaration of which each host, or each of those that it lists, has one.
// The node of host sv1 is called NAME-sv1. Its id and its addresses follow from the number of the host, so
// that another host that is added or removed changes neither.
func (d *declaration) perHost(name string, most int) ([]nodeCopy, *problem.Problem) {
	hosts := d.loader.site.Hosts
	switch {
	case d.Per != eachHost:
		return nil, mistake("node %s: per = %q is unknown", name, d.Per).
			Try("write per = %q: a node on each host, or on each of hosts = [...]", eachHost)
	case d.At.Keys["host"] != nil:
		return nil, mistake("node %s has both per and host", name).
			Try("remove host, or list several in hosts = [...]")
	case strings.ContainsAny(name, "{}"):
		return nil, mistake("node %q is a range and has per = %q", name, eachHost).
			Try("declare a table for each node that a host has")
	case len(hosts) > most:
		return nil, mistake("the site has more than %d nodes with those of %q", maxNodes, name).Try("make several sites")
	}
	for i, wanted := range d.Hosts {
		if !slices.ContainsFunc(hosts, func(h site.Host) bool { return h.Name == wanted }) {
			d.reportAt(d.At.Keys["hosts"].Items[i], mistake("host %q of node %s is not declared", wanted, name).
				Try("declare [host.%s], or remove it here", wanted))
		}
	}
	var all []nodeCopy
	for i, h := range hosts {
		if d.Hosts == nil || slices.Contains(d.Hosts, h.Name) {
			all = append(all, nodeCopy{name: name + "-" + h.Name, nth: d.loader.site.NumberOf(i) - 1,
				perHost: name, host: h.Name})
		}
	}
	return all, nil
}
