package check

import (
	"slices"

	"orrery/internal/site"
	"orrery/internal/site/service"
)

// checkActive checks the services that each host answers at the gateway's address of a network: the host must
// have that address, and one of the nodes that answer.
func checkActive(ix *index, found *findings) {
	if len(ix.Active) == 0 {
		return
	}
	nodes := ix.NodesByName()
	for i := range ix.Active {
		a := &ix.Active[i]
		key := at("service", a.Name)
		if !checkLabel(found, key, "service", a.Name) {
			continue
		}
		if !slices.Contains(service.Kinds, a.Kind) {
			found.report(at("service", a.Name, "active"), `write active = "dns" or "ntp"`,
				"service %s: active = %q is unknown", a.Name, a.Kind)
			continue
		}
		for k := range ix.Active[:i] {
			if other := &ix.Active[k]; other.Kind == a.Kind && other.Network == a.Network && a.Network != "" {
				found.reportConflict(key, at("service", other.Name), "remove one: its nodes can answer for both",
					"services %s and %s both answer %s on network %s", other.Name, a.Name, a.Kind, a.Network)
			}
		}
		if a.Network == "" || checkActiveNetwork(ix, found, a) {
			checkActiveNodes(ix, found, a, nodes)
		}
	}
}

// checkActiveNetwork reports whether hosts have the gateway's address of the network of an active service.
func checkActiveNetwork(ix *index, found *findings, a *service.Active) bool {
	on, known := ix.Network(a.Network)
	key := at("service", a.Name)
	switch {
	case !known:
		found.reportUnknown(at("service", a.Name, "network"), "network", a.Network,
			names(ix.Networks, func(n *site.Network) string { return n.Name }))
	case !on.Gateway.IsValid():
		found.reportConflict(key, at("network", on.Name), "give the network a gateway, where the service answers",
			"service %s: network %s has no gateway", a.Name, on.Name)
	case !site.KindOf(on.Kind).Bridged || on.HasUplink():
		found.reportConflict(key, at("network", on.Name), "choose a network of kind bridge that is not on a wire",
			"service %s: the gateway of network %s is not only that of its nodes", a.Name, on.Name)
	default:
		return true
	}
	return false
}

// checkActiveNodes checks that each host with nodes on the network of an active service has one node that answers.
func checkActiveNodes(ix *index, found *findings, a *service.Active, nodes map[string]*site.Node) {
	key := at("service", a.Name, "nodes")
	if len(a.Nodes) == 0 {
		found.report(key, `add nodes = ["infra*"], which answer`, "service %s has no nodes", a.Name)
		return
	}
	if ix.Twin != "" { // it may leave out nodes, and it may have them all on one host
		return
	}
	answers := map[string]string{} // the node that answers, by host
	placed := true
	for _, name := range a.Nodes {
		n, known := nodes[name]
		if !known {
			continue
		}
		if a.Network != "" && !slices.Contains(n.Networks(), a.Network) {
			found.report(key, `add net.`+a.Network+` = "auto" to the node`, "service %s: node %s is not on network %s",
				a.Name, name, a.Network)
		}
		host := n.Host
		if len(ix.Hosts) <= 1 {
			host = ""
		} else if host == "" {
			found.reportConflict(key, at("node", name), `declare the node with per = "host", so that each host has one`,
				"service %s: node %s may be on any host", a.Name, name)
			placed = false
			continue
		}
		if other, taken := answers[host]; taken {
			found.report(key, "choose one of them", "service %s: nodes %s and %s are on the same host", a.Name, other, name)
			continue
		}
		answers[host] = name
	}
	if placed && len(ix.Hosts) > 1 {
		checkActiveHosts(ix, found, a, answers)
	}
}

// checkActiveHosts reports hosts whose nodes use an active service, and which have no node that answers.
func checkActiveHosts(ix *index, found *findings, a *service.Active, answers map[string]string) {
	for h := range each(ix.Hosts) {
		if _, ok := answers[h.Name]; ok {
			continue
		}
		for n := range each(ix.Nodes) {
			if (n.Host == "" || n.Host == h.Name) && slices.Contains(n.Networks(), a.Network) {
				found.report(at("service", a.Name, "nodes"), `declare the node that answers with per = "host", so that each host has one`,
					"service %s: host %s has no node of it, and node %s may be there", a.Name, h.Name, n.Name)
				break
			}
		}
	}
}
