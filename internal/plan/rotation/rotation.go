// Package rotation decides which generations the secrets of a site have. It is pure.
package rotation

import (
	"fmt"
	"slices"
	"strings"

	"orrery/internal/observe"
	"orrery/internal/problem"
	"orrery/internal/site"
	"orrery/internal/site/secretspec"
	"orrery/internal/site/spec"
)

// Generations are the generations that secrets have, or will have when a plan runs, by the name under which
// hosts store them. A secret that is not listed is in its first generation.
type Generations map[string]int

// Of returns the generation of a secret.
func (g Generations) Of(stored string) int { return max(1, g[stored]) }

// OfNode returns the generations of the secrets that the roles of a node read, or nil if they read none.
func (g Generations) OfNode(s *site.Site, n *site.Node) map[string]int {
	var all map[string]int
	for _, r := range s.RolesOf(n) {
		for _, use := range r.Secrets {
			if all == nil {
				all = map[string]int{}
			}
			stored := secretspec.NameFor(s, use.Name, n.Name)
			all[stored] = g.Of(stored)
		}
	}
	return all
}

// Observed returns the generations of secrets as the hosts store them. Those in raised grow. It
// returns a problem if the hosts differ about a secret that is not in raised, because a rotation was
// interrupted. No host decides such a case for the others.
func Observed(hosts []observe.Host, raised map[string]bool) (Generations, error) {
	all := Generations{}
	first, differ := map[string]string{}, map[string]bool{}
	for i := range hosts {
		h := &hosts[i]
		for name, n := range h.Secrets {
			switch on, ok := first[name]; {
			case !ok:
				all[name], first[name] = n, h.Name
			case n != all[name] && !raised[name]:
				return nil, Unfinished(name, on, all[name], h.Name, n)
			case n != all[name]:
				// an honest host is one generation ahead at most, and the number of another does not count
				all[name], differ[name] = min(n, all[name]), true
			}
		}
	}
	for name := range raised {
		all[name] = all.Of(name) + 1
		if differ[name] {
			all[name]++
		}
		for isRecorded(hosts, name, all[name]) { // the hosts have lost their number
			all[name]++
		}
	}
	return all, nil
}

// isRecorded reports whether some node has a generation of a secret.
func isRecorded(hosts []observe.Host, name string, generation int) bool {
	return slices.ContainsFunc(hosts, func(h observe.Host) bool {
		return slices.ContainsFunc(h.Nodes, func(n observe.Node) bool { return n.Config.Secrets[name] == generation })
	})
}

// Unfinished returns the problem that two hosts have different generations of a secret.
func Unfinished(name, on string, generation int, other string, another int) error {
	secret, node := secretspec.Split(name)
	if node != "" {
		secret += " --node " + node
	}
	return problem.New(problem.Surprise, "secret %s: host %s has generation %d and host %s has %d: a rotation was interrupted",
		name, on, generation, other, another).
		Try("orrery secret rotate %s finishes it with one more generation", secret)
}

// Describe describes how the secrets of a node change, or returns "".
func Describe(old, desired *spec.Config) string {
	var all []string
	for _, name := range spec.ChangedSecrets(old, desired) {
		secret, _ := secretspec.Split(name)
		all = append(all, fmt.Sprintf("secret %s: generation %d instead of %d", secret, desired.Generation(name),
			old.Generation(name)))
	}
	return strings.Join(all, ", ")
}
