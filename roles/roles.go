// Package roles has the roles that ship with Orrery, such as orrery/postgresql.
//
// Each is a directory as a site would have it in roles/. Orrery reads it from the program itself, so the
// program's version is that of the roles. Copies of a site directory contain the roles that the site uses
// (package sitefile): a release keeps those with which it was staged.
package roles

import (
	"embed"
	"io/fs"
	"strings"
)

// Namespace is the first part of the names of these roles. Sites have no role of that name.
const Namespace = "orrery"

//go:embed */*
var files embed.FS

// IsShipped reports whether a name is of the form of these names, such as orrery/postgresql. There may be no
// such role.
func IsShipped(name string) bool { return strings.HasPrefix(name, Namespace+"/") }

// Names returns the names of all roles, sorted.
func Names() []string {
	entries, _ := fs.ReadDir(files, ".") // which cannot fail
	names := make([]string, len(entries))
	for i, e := range entries {
		names[i] = Namespace + "/" + e.Name()
	}
	return names
}

// Files returns the content of the files of a role by name, or nil if there is no such role.
func Files(name string) map[string][]byte {
	dir, shipped := strings.CutPrefix(name, Namespace+"/")
	if !shipped || strings.Contains(dir, "/") || !fs.ValidPath(dir) || dir == "." {
		return nil
	}
	entries, err := fs.ReadDir(files, dir)
	if err != nil {
		return nil
	}
	all := make(map[string][]byte, len(entries))
	for _, e := range entries {
		if all[e.Name()], err = files.ReadFile(dir + "/" + e.Name()); err != nil {
			return nil
		}
	}
	return all
}
