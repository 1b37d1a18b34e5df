// Package role applies roles through a host.Runner: to a layer being built, and to a running node.
package role

import (
	"maps"
	"slices"

	"orrery/internal/host"
	"orrery/internal/site"
	"orrery/internal/site/spec"
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
func bootEnv(d *spec.Duty) []string { return append(buildEnv(d.Role), d.Surround...) }

func declared(r *site.Role) []string {
	var env []string
	for _, key := range slices.Sorted(maps.Keys(r.Env)) {
		env = append(env, key+"="+r.Env[key])
	}
	return env
}
