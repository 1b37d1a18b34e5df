package check

import (
	"strings"

	"orrery/internal/site"
)

// An index is a site with the lookup tables for the checks, which are computed once. Checks only
// read it.
type index struct {
	*site.Site
	roleByName map[string]*site.Role
	kindByName map[string]site.NetworkKind // kinds of networks, by the network's name
	closures   map[string][]*site.Role     // cache of rolesOf
	used       map[string]bool             // roles that at least one node has
}

func newIndex(s *site.Site) *index {
	ix := &index{
		Site: s, roleByName: map[string]*site.Role{}, kindByName: map[string]site.NetworkKind{},
		closures: map[string][]*site.Role{}, used: map[string]bool{},
	}
	for r := range each(s.Roles) {
		ix.roleByName[r.Name] = r
	}
	for n := range each(s.Networks) {
		ix.kindByName[n.Name] = site.KindOf(n.Kind)
	}
	for n := range each(s.Nodes) {
		for _, r := range ix.rolesOf(n.Roles) {
			ix.used[r.Name] = true
		}
	}
	return ix
}

// rolesOf returns the same as Site.RolesOf. It computes the result once for each list of roles.
func (ix *index) rolesOf(declared []string) []*site.Role {
	key := strings.Join(declared, "\x00")
	roles, done := ix.closures[key]
	if !done {
		roles = site.TransitiveRoles(declared, func(name string) (*site.Role, bool) {
			return ix.roleByName[name], ix.roleByName[name] != nil
		})
		ix.closures[key] = roles
	}
	return roles
}
