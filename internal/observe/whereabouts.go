package observe

import "orrery/internal/problem"

// Whereabouts gives, by name, the hosts that say they have a node. A host may say what it likes, so of a node that belongs to another by the site file this counts for nothing.
func Whereabouts(hosts []Host) map[string][]string {
	all := map[string][]string{}
	for i := range hosts {
		for j := range hosts[i].Nodes {
			name := hosts[i].Nodes[j].Name
			if on := all[name]; len(on) == 0 || on[len(on)-1] != hosts[i].Name { // it may be staged there as well
				all[name] = append(on, hosts[i].Name)
			}
		}
	}
	return all
}

// OnTwo says that two hosts have a node. Nobody guesses which of them is right: the other would lose it.
func OnTwo(node, one, other string) error {
	return problem.New(problem.Surprise, "node %s is on host %s and on host %s, and the site does not say where it belongs", node, one, other).At("site.toml").
		Try("say host = in [node.%s]: up then removes it from the other; --without leaves a host out until then", node)
}
