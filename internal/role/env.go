// Package role applies roles to places through a host.Runner: into a layer that is being built, and onto a node that runs.
package role

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"orrery/internal/host"
	"orrery/internal/site"
	"orrery/internal/site/render"
)

// Venv is the one virtual environment of a node's Python packages.
const Venv = "/opt/orrery/venv"

const path = "PATH=" + Venv + "/bin:" + host.Path

// Dir is where a step finds the files that stand beside role.toml.
func Dir(role string) string { return "/run/orrery-role/" + role }

// buildEnv is what a build step sees: nothing of a node or site, because a layer is for many.
func buildEnv(r *site.Role) []string {
	env := []string{path, "ORRERY_ROLE=" + r.Name, "ORRERY_ROLE_DIR=" + Dir(r.Name)}
	return append(env, declared(r)...)
}

// bootEnv is what a boot step or a health command sees.
func bootEnv(v *render.View, s *site.Site, node string, r *site.Role) []string {
	n := v.Node(node)
	env := append(buildEnv(r),
		"ORRERY_SITE="+s.Name, "ORRERY_NODE="+n.Name, fmt.Sprintf("ORRERY_ID=%d", n.ID),
		"ORRERY_INVENTORY=/etc/orrery/inventory.json", "ORRERY_SECRETS=/etc/orrery/secrets",
	)
	if s.Twin != "" {
		env = append(env, "ORRERY_TWIN="+s.Twin)
	}
	if n.Release != 0 {
		env = append(env, fmt.Sprintf("ORRERY_RELEASE=%d", n.Release))
	}
	if n.Address.IsValid() {
		env = append(env, "ORRERY_ADDRESS="+n.Address.String())
	}
	for network, address := range n.Addresses {
		env = append(env, "ORRERY_ADDRESS_"+variable(network)+"="+address.String())
	}
	for _, role := range s.Roles {
		if peers := v.Peers(role.Name); len(peers) > 0 {
			env = append(env, "ORRERY_PEERS_"+variable(role.Name)+"="+peerNames(peers))
		}
	}
	return env
}

func declared(r *site.Role) []string {
	var env []string
	for _, key := range slices.Sorted(maps.Keys(r.Env)) {
		env = append(env, key+"="+r.Env[key])
	}
	return env
}

func peerNames(peers []*render.NodeView) string {
	names := make([]string, len(peers))
	for i, p := range peers {
		names[i] = p.Name
	}
	return strings.Join(names, " ")
}

// variable makes a name fit for a variable: upper case, "_" for all that is neither letter nor digit.
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
