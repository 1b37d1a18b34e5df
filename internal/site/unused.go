package site

// UnusedRoles returns the names of the roles that no node has, in any release or twin, in the order of
// the site.
func (s *Site) UnusedRoles() []string {
	var wanted []string
	for i := range s.Nodes {
		wanted = append(wanted, s.Nodes[i].Roles...)
		wanted = append(wanted, s.Nodes[i].StandsFor...)
		wanted = append(wanted, s.Nodes[i].SimulatedBy)
	}
	for i := range s.Releases {
		for _, name := range s.Releases[i].Roles {
			wanted = append(wanted, name)
		}
	}
	roles := make(map[string]*Role, len(s.Roles))
	for i := range s.Roles {
		roles[s.Roles[i].Name] = &s.Roles[i]
	}
	used := map[string]bool{}
	for len(wanted) > 0 {
		name := wanted[len(wanted)-1]
		wanted = wanted[:len(wanted)-1]
		if r := roles[name]; r != nil && !used[name] {
			used[name] = true
			wanted = append(append(wanted, r.NeedsRoles...), r.SimulatedBy)
		}
	}
	unused := []string{}
	for i := range s.Roles {
		if name := s.Roles[i].Name; !used[name] {
			unused = append(unused, name)
		}
	}
	return unused
}
