package observe

import (
	"slices"

	"orrery/internal/problem"
)

// HostsByNode returns the hosts that report each node, by the node's name. Stage is 0 for the live
// site, or a release in quarantine. A node is where it is live, even if an interrupted move left
// other releases of it on other hosts. A node that is only in quarantine counts as being there,
// because that is where it would become live. The exception is a host in unknown state, where the
// node may be live.
//
// A host may report anything. Therefore its report does not count for a node that the site file
// places on another host.
func HostsByNode(hosts []Host, stage int) map[string][]string {
	all, apart := map[string][]string{}, map[string][]string{}
	for i := range hosts {
		for j := range hosts[i].Nodes {
			name, on := hosts[i].Nodes[j].Name, all
			if hosts[i].Nodes[j].Staged {
				on = apart
			}
			// of several releases
			if listed := on[name]; len(listed) == 0 || listed[len(listed)-1] != hosts[i].Name {
				on[name] = append(listed, hosts[i].Name)
			}
		}
	}
	for name, on := range apart {
		mayBe := func(h Host) bool { return h.Unknown && stage == 0 }
		if len(all[name]) == 0 && !slices.ContainsFunc(hosts, mayBe) {
			all[name] = on
		}
	}
	return all
}

// HostByNode returns the host of each node, by the node's name. A node on several hosts is on the first.
// A node on its way to another host is on the host that sent it.
func HostByNode(hosts []Host, stage int) map[string]string {
	homes := map[string]string{}
	for i := range hosts {
		for j := range hosts[i].OutgoingMoves {
			homes[hosts[i].OutgoingMoves[j].Name] = hosts[i].Name
		}
	}
	for name, on := range HostsByNode(hosts, stage) {
		homes[name] = on[0]
	}
	return homes
}

// DuplicateError returns the error that two hosts have a node. Orrery does not guess which one is right,
// because the other copy would be lost.
func DuplicateError(node, one, other string) error {
	return problem.New(problem.Surprise,
		"node %s is on host %s and on host %s, and the site file does not assign it to either", node, one, other).
		At("site.toml").
		Try("set host = in [node.%s]: up then removes it from the other; --without leaves a host out until then", node)
}
