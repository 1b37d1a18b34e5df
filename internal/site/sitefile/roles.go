package sitefile

import (
	"context"
	"errors"
	"io/fs"
	"path"
	"strings"

	"golang.org/x/sys/unix"

	"orrery/internal/site"
	"orrery/internal/tree"
	"orrery/roles"
)

const roleFileName = "role.toml"

// A roleSource is a directory with roles.
type roleSource struct {
	tree *tree.Root
	dir  string // in the tree
	kept string // in a copy of the site directory
	file string // name in messages, of a directory in roles_path
}

// roles reads every role of the site directory, even if no node has it. Then it reads the other roles of
// the site directories that it extends.
func (l *loader) roles() {
	known := map[string]bool{}
	for _, of := range l.chain {
		own, within := roleSource{tree: of.dir.tree, dir: "roles", kept: of.dir.kept + "roles"}, of.label("roles")
		names, err := of.dir.tree.Names("roles", maxRoles)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			continue
		case errors.Is(err, tree.ErrTooLarge):
			l.report.add(mistake("more than %d roles", maxRoles).At(within).Try("make several sites"))
			continue
		case err != nil:
			l.report.add(readProblem("it", err).At(within))
			continue
		}
		for _, name := range names {
			info, err := of.dir.tree.Stat("roles/" + name)
			switch {
			case strings.HasPrefix(name, "."), known[name]:
			case name == roles.Namespace && !l.dir.copied:
				l.report.add(reservedRole().At(path.Join(within, name)))
			case err != nil:
				l.report.add(readProblem("it", err).At(path.Join(within, name)))
			case info.Mode&unix.S_IFMT == unix.S_IFDIR:
				known[name], l.report.shared[name] = true, path.Join(within, name)
				l.role(own, name)
			}
		}
	}
}

func (l *loader) role(from roleSource, name string) {
	beside, whole := l.beside(from, name)
	addRole(l, name, beside, whole)
}

// addRole adds a role whose directory has the files beside, including role.toml.
func addRole(l *loader, name string, beside map[string][]byte, whole bool) {
	dir := l.report.roleDir(name)
	content, ok := beside[roleFileName]
	if !ok {
		if whole {
			l.report.add(mistake("%s is missing in the role's directory",
				roleFileName).At(dir).Try("write one or remove the directory"))
		}
		// so that nodes with this role are not reported as well
		l.site.Roles = append(l.site.Roles, site.Role{Name: name, Dir: dir})
		return
	}
	delete(beside, roleFileName)
	var file roleFile
	l.decode(l.report.roleFile(name), content, &file)
	l.site.Roles = append(l.site.Roles, l.roleOf(name, &file, beside))
}

// beside reads all files in a role's directory. It reports whether there were no mistakes.
func (l *loader) beside(from roleSource, name string) (beside map[string][]byte, whole bool) {
	beside, before := map[string][]byte{}, len(l.report.mistakes)
	dir := l.report.roleDir(name)
	top, err := from.tree.Sub(path.Join(from.dir, name))
	if err != nil {
		l.report.add(readProblem("it", err).At(dir))
		return nil, false
	}
	defer top.Close()
	err = top.Walk(context.Background(), roleBounds, func(e *tree.Entry) error {
		switch {
		case e.IsDir() && e.Name == "__pycache__":
			return tree.SkipDir
		case e.IsDir() || leftover(e.Name):
			return nil
		}
		most := int64(maxFile)
		if e.Path == roleFileName {
			most = maxRole
		}
		// from the top, because symbolic links may lead anywhere inside the tree
		content, err := l.dir.readIn(from.tree, path.Join(from.dir, name, e.Path), most, path.Join(from.kept, name, e.Path))
		if err != nil {
			l.report.add(readProblem("it", err).At(path.Join(dir, e.Path)))
			return nil
		}
		beside[e.Path] = content
		return nil
	})
	if errors.Is(err, tree.ErrTooLarge) {
		l.report.add(mistake("the role's directory has more than %d files, or more than %d nested directories",
			roleBounds.All, roleBounds.Depth).At(dir).
			Try("put them in an archive or a package"))
	} else if err != nil {
		l.report.add(readProblem("it", err).At(dir))
	}
	return beside, len(l.report.mistakes) == before
}

// leftover reports whether a file was left by a tool such as an editor. Such a file must not change
// the layer.
func leftover(name string) bool {
	return strings.HasSuffix(name, "~") || strings.HasPrefix(name, ".") && strings.HasSuffix(name, ".swp")
}
