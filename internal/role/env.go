// Package role applies roles through a host.Runner: to a layer being built, and to a running node.
package role

import (
	"maps"
	"slices"

	"orrery/internal/host"
	"orrery/internal/site"
	"orrery/internal/site/spec"
)

// Venv is the virtual environment for all Python packages of a node.
const Venv = "/opt/orrery/venv"

const path = "PATH=" + Venv + "/bin:" + host.Path

// Dir returns the directory where steps find the other files of a role's directory.
func Dir(role string) string { return "/run/orrery-role/" + role }

// buildEnv returns the environment of a build step. It has no data of a node or site, because many
// nodes share a layer.
func buildEnv(r *site.Role) []string {
	env := []string{path, "ORRERY_ROLE=" + r.Name, "ORRERY_ROLE_DIR=" + Dir(r.Name)}
	return append(env, declared(r)...)
}

// bootEnv returns the environment of a boot step or a health command.
func bootEnv(d *spec.RoleAction) []string { return append(buildEnv(d.Role), d.Surround...) }

func declared(r *site.Role) []string {
	var env []string
	for _, key := range slices.Sorted(maps.Keys(r.Env)) {
		env = append(env, key+"="+r.Env[key])
	}
	return env
}
