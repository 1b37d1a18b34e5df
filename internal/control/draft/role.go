package draft

import (
	_ "embed"
	"path/filepath"
	"strings"

	"orrery/internal/host"
	"orrery/internal/problem"
	"orrery/internal/site/check"
	"orrery/internal/site/sitefile"
)

//go:embed newrole.toml
var newRole string

// WriteRole writes a role with comments into a site directory, and returns the path of its file.
func WriteRole(dir, name string) (string, error) {
	if !check.ValidLabel(name) {
		return "", problem.New(problem.Usage, "role name %q is not valid", name).
			Try("lower case letters, digits and \"-\"")
	}
	if site := filepath.Join(dir, sitefile.Name); !exists(site) {
		return "", problem.New(problem.Usage, "no such file").At(site).Try("orrery init %s writes a site", dir)
	}
	role := filepath.Join(dir, "roles", name)
	if exists(role) {
		return "", problem.New(problem.Usage, "role %s exists already", name).At(role).Try("choose another name")
	}
	text := strings.ReplaceAll(newRole, "NAME", name)
	paths, err := write([]host.File{{Path: filepath.Join(role, "role.toml"), Content: []byte(text), Mode: 0o644}})
	return strings.Join(paths, ""), err
}
