package observe

import (
	"slices"

	"orrery/internal/problem"
)

// Whereabouts returns, by name of the node, the hosts that say they have it, for a site as it is live (stage
// 0) or for a release in quarantine. A node is where it is live, even if a move was cut short and other
// releases of it are elsewhere. Where it is only in quarantine, it would be made live, unless it may be live
// on a host of which nothing is known.
// A host may say what it likes, so of a node that belongs to another by the site file this counts for nothing.
func Whereabouts(hosts []Host, stage int) map[string][]string {
	all, apart := map[string][]string{}, map[string][]string{}
	for i := range hosts {
		for j := range hosts[i].Nodes {
			name, on := hosts[i].Nodes[j].Name, all
			if hosts[i].Nodes[j].Staged {
				on = apart
			}
			if listed := on[name]; len(listed) == 0 || listed[len(listed)-1] != hosts[i].Name { // of several releases
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

// Homes returns the hosts that nodes are on, by their names: of nodes on several, the first, and of
// a node that is on its way to another host, the one that has given it.
func Homes(hosts []Host, stage int) map[string]string {
	homes := map[string]string{}
	for i := range hosts {
		for j := range hosts[i].Given {
			homes[hosts[i].Given[j].Name] = hosts[i].Name
		}
	}
	for name, on := range Whereabouts(hosts, stage) {
		homes[name] = on[0]
	}
	return homes
}

// OnTwo says that two hosts have a node. Nobody guesses which of them is right: the other would lose it.
func OnTwo(node, one, other string) error {
	return problem.New(problem.Surprise,
		"node %s is on host %s and on host %s, and the site does not say where it belongs", node, one, other).At("site.toml").
		Try("say host = in [node.%s]: up then removes it from the other; --without leaves a host out until then", node)
}
