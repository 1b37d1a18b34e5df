package render

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"orrery/internal/site"
	"orrery/internal/site/params"
)

// Environment returns the environment in which the steps and health commands of a node run, without what
// depends on the role.
func (v *View) Environment(node string) []string {
	view := v.byName[node]
	env := []string{
		"ORRERY_SITE=" + v.site.Name, "ORRERY_NODE=" + view.Name, fmt.Sprintf("ORRERY_ID=%d", view.ID),
		"ORRERY_INVENTORY=/etc/orrery/inventory.json", "ORRERY_SECRETS=/etc/orrery/secrets",
	}
	if v.site.Twin != "" {
		env = append(env, "ORRERY_TWIN="+v.site.Twin)
	}
	if view.Release != 0 {
		env = append(env, fmt.Sprintf("ORRERY_RELEASE=%d", view.Release))
	}
	if view.Address.IsValid() {
		env = append(env, "ORRERY_ADDRESS="+view.Address.String())
	}
	for _, network := range slices.Sorted(maps.Keys(view.Addresses)) {
		env = append(env, "ORRERY_ADDRESS_"+variable(network)+"="+view.Addresses[network].String())
	}
	return append(env, v.peers()...)
}

// roleEnvironment returns what a role adds to that.
func (v *View) roleEnvironment(n *site.Node, r *site.Role) []string {
	env := []string{"ORRERY_ROLE=" + r.Name, "ORRERY_ROLE_DIR=/run/orrery-role/" + r.Name}
	for _, key := range slices.Sorted(maps.Keys(r.Env)) {
		env = append(env, key+"="+r.Env[key])
	}
	return append(env, params.Env(v.site, n, r)...)
}

// peers returns the names of all nodes by role, as environment variables. The list is long and the
// same for all nodes, so it is computed once.
func (v *View) peers() []string {
	if v.named == nil {
		v.named = []string{}
		for _, r := range v.site.Roles {
			var names []string
			for _, p := range v.Peers(r.Name) {
				names = append(names, p.Name)
			}
			if len(names) > 0 {
				v.named = append(v.named, "ORRERY_PEERS_"+variable(r.Name)+"="+strings.Join(names, " "))
			}
		}
	}
	return v.named
}

// variable turns a name into the name of an environment variable: upper case, with "_" for other
// characters than letters and digits.
func variable(name string) string {
	return strings.Map(func(c rune) rune {
		switch {
		case c >= 'a' && c <= 'z':
			return c - 'a' + 'A'
		case c >= 'A' && c <= 'Z', c >= '0' && c <= '9':
			return c
		}
		return '_'
	}, name)
}
