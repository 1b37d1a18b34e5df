package check

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"orrery/internal/site"
)

// checkRolesTogether checks roles that are on the same node. It checks each set of roles once.
func checkRolesTogether(ix *index, found *findings) {
	told := map[string]bool{}
	done := map[string]bool{}
	for n := range each(ix.Nodes) {
		if key := strings.Join(n.Roles, "\x00"); !done[key] {
			done[key] = true
			checkRoleConflicts(found, ix.rolesOf(n.Roles), n.Name, told)
		}
	}
}

// A claim is something that one role puts on a node and that no other role may put there.
type claim struct {
	key   []string
	role  string
	value string // two claims with the same value do not conflict
}

func checkRoleConflicts(found *findings, roles []*site.Role, node string, told map[string]bool) {
	claims := map[string]claim{}
	put := func(what string, mine claim) {
		first, taken := claims[what]
		if !taken {
			claims[what] = mine
			return
		}
		pair := strings.Join(first.key, "\x00") + "\x00" + strings.Join(mine.key, "\x00")
		if told[pair] || mine.value != "" && mine.value == first.value {
			return
		}
		told[pair] = true
		text := fmt.Sprintf("%s is already on node %s, by role %s", what, node, first.role)
		if mine.value != "" {
			text = fmt.Sprintf("%s is %s here, but role %s on the same node %s has %s", what, mine.value, first.role, node,
				first.value)
		}
		found.reportConflict(mine.key, first.key, "keep it in one role and let the other need that role", "%s", text)
	}
	for _, r := range roles {
		for k, f := range r.Files {
			put("file "+f.Path, claim{at("role", r.Name, "file", k, "path"), r.Name, ""})
		}
		for k, v := range r.Volumes {
			put("a volume at "+v.Path, claim{at("role", r.Name, "volume", k, "path"), r.Name, ""})
		}
		for _, name := range r.Services {
			put("when of "+name, claim{at("role", r.Name, "unit", name), r.Name, `"boot"`})
		}
		for _, name := range r.Active {
			if !slices.Contains(r.Services, name) {
				put("when of "+name, claim{at("role", r.Name, "unit", name), r.Name, `"active"`})
			}
		}
		for k, x := range r.Secrets {
			put("secret "+x.Name, claim{at("role", r.Name, "secret", k), r.Name,
				fmt.Sprintf("of %s, mode %04o", x.Owner, x.Mode)})
		}
		for _, name := range slices.Sorted(maps.Keys(r.Env)) {
			put("variable "+name, claim{at("role", r.Name, "env", name), r.Name, fmt.Sprintf("%q", r.Env[name])})
		}
	}
}
