package draft

import (
	_ "embed"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"orrery/internal/host"
	"orrery/internal/problem"
	"orrery/internal/site/check"
	"orrery/internal/site/sitefile"
	"orrery/roles"
)

//go:embed newrole.toml
var newRole string

// WriteRole writes a role with comments into a site directory, and returns the path of its file.
func WriteRole(dir, name string) (string, error) {
	role, err := newRoleDir(dir, name)
	if err != nil {
		return "", err
	}
	text := strings.ReplaceAll(newRole, "NAME", name)
	paths, err := write([]host.File{{Path: filepath.Join(role, "role.toml"), Content: []byte(text), Mode: 0o644}})
	return strings.Join(paths, ""), err
}

// CopyRole writes a role that ships with Orrery into a site directory, as a role of the site called name, and
// returns the paths of its files. Without a name, it is called postgresql if the other is orrery/postgresql.
func CopyRole(dir, shipped, name string) (paths []string, err error) {
	r, err := sitefile.ShippedRole(shipped)
	if err != nil {
		return nil, err
	}
	if name == "" {
		name = strings.TrimPrefix(r.Name, roles.Namespace+"/")
	}
	role, err := newRoleDir(dir, name)
	if err != nil {
		return nil, err
	}
	files := roles.Files(r.Name)
	var all []host.File
	for _, file := range slices.Sorted(maps.Keys(files)) {
		all = append(all, host.File{Path: filepath.Join(role, file), Content: files[file], Mode: 0o644})
	}
	return write(all)
}

// newRoleDir returns the directory of a role that a site does not have yet.
func newRoleDir(dir, name string) (string, error) {
	if !check.ValidLabel(name) {
		return "", problem.New(problem.Usage, "role name %q is not valid", name).
			Try("lower case letters, digits and \"-\"")
	}
	if name == roles.Namespace {
		return "", problem.New(problem.Usage, "role name %q is reserved for the roles that ship with Orrery", name).
			Try("choose another name")
	}
	if site := filepath.Join(dir, sitefile.Name); !exists(site) {
		return "", problem.New(problem.Usage, "no such file").At(site).Try("orrery init %s writes a site", dir)
	}
	role := filepath.Join(dir, "roles", name)
	if exists(role) {
		return "", problem.New(problem.Usage, "role %s exists already", name).At(role).Try("choose another name")
	}
	return role, nil
}
