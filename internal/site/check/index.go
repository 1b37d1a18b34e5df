package check

import (
	"strings"

	"orrery/internal/site"
)

// An index is a site with what checks look up in it, worked out once. Checks only read it.
type index struct {
	*site.Site
	roleByName map[string]*site.Role
	kindByName map[string]site.NetworkKind // of networks
	closures   map[string][]*site.Role     // see rolesOf
	used       map[string]bool             // roles that some node has
}

func newIndex(s *site.Site) *index {
	ix := &index{Site: s, roleByName: map[string]*site.Role{}, kindByName: map[string]site.NetworkKind{}, closures: map[string][]*site.Role{}}
	for i := range s.Roles {
		ix.roleByName[s.Roles[i].Name] = &s.Roles[i]
	}
	for i := range s.Networks {
		ix.kindByName[s.Networks[i].Name] = site.KindOf(s.Networks[i].Kind)
	}
	ix.used = ix.usedRoles()
	return ix
}

// rolesOf is Site.RolesOf, computed once for each list of roles.
func (ix *index) rolesOf(declared []string) []*site.Role {
	key := strings.Join(declared, "\x00")
	roles, done := ix.closures[key]
	if !done {
		roles = site.Closure(declared, func(name string) (*site.Role, bool) { return ix.roleByName[name], ix.roleByName[name] != nil })
		ix.closures[key] = roles
	}
	return roles
}

func (ix *index) usedRoles() map[string]bool {
	used := map[string]bool{}
	for i := range ix.Nodes {
		for _, r := range ix.rolesOf(ix.Nodes[i].Roles) {
			used[r.Name] = true
		}
	}
	return used
}
