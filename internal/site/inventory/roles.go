package inventory

import (
	"strings"

	"orrery/internal/site"
)

// lookupRoles returns the roles under which others find a node. They include roles that the node
// replaces as a simulator.
func lookupRoles(s *site.Site, n *site.Node, its []string) []string {
	if len(n.StandsFor) == 0 {
		return its
	}
	var names []string
	for _, r := range s.LookupRoles(n) {
		names = append(names, r.Name)
	}
	return names
}

// roleNames returns a function that returns all roles of a node. It computes the result once for
// each list of declared roles.
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
