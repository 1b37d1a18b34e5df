package inventory

import (
	"strings"

	"orrery/internal/site"
)

// roleNames gives a function that tells all roles of a node. Nodes that are declared alike are alike: it looks
// only once for each list of roles.
func roleNames(s *site.Site) func(*site.Node) []string {
	known := map[string][]string{}
	return func(n *site.Node) []string {
		key := strings.Join(n.Roles, "\x00")
		names, ok := known[key]
		if !ok {
			for _, r := range s.RolesOf(n) {
				names = append(names, r.Name)
			}
			known[key] = names
		}
		return names
	}
}
