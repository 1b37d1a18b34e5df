package twin

import (
	"slices"

	"orrery/internal/site"
	"orrery/internal/site/service"
)

// simulate replaces nodes and roles by their simulators. The simulator of a role takes the role's
// name, as in Release. The simulator of a single node does not, because other nodes may have the
// same roles. The node then lists in StandsFor the roles under which others find it.
func simulate(s *site.Site) {
	s.Nodes = slices.Clone(s.Nodes)
	for i := range s.Nodes {
		n := &s.Nodes[i]
		if n.SimulatedBy == "" {
			continue
		}
		mine := []string{n.SimulatedBy}
		if slices.Contains(n.Roles, service.Role) {
			mine = append(mine, service.Role) // others reach the simulator at the address of the service
		}
		for k := range s.Active {
			if a := &s.Active[k]; a.Has(n.Name) && !slices.Contains(mine, service.RoleOf(a.Kind)) {
				mine = append(mine, service.RoleOf(a.Kind))
			}
		}
		n.StandsFor, n.Roles, n.SimulatedBy = n.Roles, mine, ""
	}
	simulators := map[string]string{}
	for i := range s.Roles {
		simulators[s.Roles[i].Name] = s.Roles[i].SimulatedBy
	}
	s.Roles = simulated(s.Roles)
	s.Releases = slices.Clone(s.Releases)
	for i := range s.Releases {
		r := &s.Releases[i]
		r.Roles = withSimulators(r.Roles, simulators)
	}
}

func simulated(roles []site.Role) []site.Role {
	first := make(map[string]*site.Role, len(roles))
	for i := range roles {
		first[roles[i].Name] = &roles[i]
	}
	roles = slices.Clone(roles)
	for i := range roles {
		r := &roles[i]
		if other := first[r.SimulatedBy]; other != nil {
			*r = renamedRole(r.Name, other, "")
		}
	}
	return roles
}
