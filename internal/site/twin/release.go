package twin

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"strings"

	"orrery/internal/problem"
	"orrery/internal/site"
)

// Release returns a site in the form of one of its releases. A role that replaces another takes
// that role's name. All references to the name, from nodes, other roles or selectors, then mean the
// replacement. Release 0 is the site as declared. Releases can be derived only from the declared
// site, never from each other.
func Release(s *site.Site, number int) (*site.Site, error) {
	if number == 0 || len(s.Nodes) > 0 && s.Nodes[0].Release == number {
		return s, nil
	}
	r, err := findRelease(s, number)
	if err != nil {
		return nil, err
	}
	if len(s.Nodes) > 0 && s.Nodes[0].Release != 0 {
		return nil, problem.New(problem.Failed, "release %d of site %s cannot be created from its release %d", number,
			s.Key(),
			s.Nodes[0].Release).
			Try("create it from the site as declared")
	}
	made := *s
	made.Nodes = withRelease(s.Nodes, r)
	made.Roles = replaceRoles(s.Roles, r.Roles)
	return &made, nil
}

// Quarantine returns a release of the site in quarantine, that is, not live.
func Quarantine(s *site.Site, number int) (*site.Site, error) {
	made, err := Release(s, number)
	if err != nil || number == 0 {
		return made, err
	}
	staged := *made
	staged.Stage = number
	return &staged, nil
}

func findRelease(s *site.Site, number int) (*site.Release, error) {
	var known []string
	for i := range s.Releases {
		if s.Releases[i].Number == number {
			return &s.Releases[i], nil
		}
		known = append(known, strconv.Itoa(s.Releases[i].Number))
	}
	wrong := problem.New(problem.Mistake, "site %s declares no release %d", s.Name, number)
	if nearest := problem.Suggest(strconv.Itoa(number), known); nearest != "" && len(known) > maxNames {
		return nil, wrong.Try("did you mean %s? Otherwise declare it: [release.%d]", nearest, number)
	}
	if len(known) == 0 || len(known) > maxNames {
		return nil, wrong.Try("declare it: [release.%d]", number)
	}
	return nil, wrong.Try("use %s, or declare it: [release.%d]", strings.Join(known, " or "), number)
}

// maxNames is the maximum number of names in a message.
const maxNames = 8

func withRelease(nodes []site.Node, r *site.Release) []site.Node {
	nodes = slices.Clone(nodes)
	for i := range nodes {
		n := &nodes[i]
		n.Release = r.Number
		if r.Requirements.File != "" {
			n.Requirements = r.Requirements
		}
		if r.Image != "" {
			n.Image = r.Image
		}
	}
	return nodes
}

// replaceRoles returns the roles after the replacements in by. If a replacement has no simulator, the
// simulator of the original role stays. A role that must not run in a twin must not run there in a
// new version.
func replaceRoles(roles []site.Role, by map[string]string) []site.Role {
	if len(by) == 0 {
		return roles
	}
	first := make(map[string]*site.Role, len(roles))
	for i := range roles {
		first[roles[i].Name] = &roles[i]
	}
	roles = slices.Clone(roles)
	for i := range roles {
		old := &roles[i]
		if other := first[by[old.Name]]; other != nil {
			*old = renamedRole(old.Name, other, cmp.Or(other.SimulatedBy, old.SimulatedBy))
		}
	}
	return roles
}

// renamedRole returns role r with the name of the role that it replaces.
func renamedRole(name string, r *site.Role, simulator string) site.Role {
	role := *r
	role.Name, role.SimulatedBy = name, simulator
	return role
}

// withSimulators returns the replacements in by without those that would remove a simulator.
func withSimulators(by map[string]string, simulated map[string]string) map[string]string {
	by = maps.Clone(by)
	maps.DeleteFunc(by, func(old, other string) bool { return simulated[old] != "" && simulated[other] == "" })
	return by
}
