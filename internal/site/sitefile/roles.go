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
)

const roleFileName = "role.toml"

func roleFileOf(role string) string { return "roles/" + role + "/" + roleFileName }

// roles reads every role of the site directory, even if no node has it.
func (l *loader) roles() {
	names, err := l.dir.tree.Names("roles", maxRoles)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return
	case errors.Is(err, tree.ErrTooLarge):
		l.report.add(mistake("more than %d roles", maxRoles).At("roles").Try("make several sites"))
		return
	case err != nil:
		l.report.add(readProblem("it", err).At("roles"))
		return
	}
	for _, name := range names {
		where := "roles/" + name
		info, err := l.dir.tree.Stat(where)
		switch {
		case strings.HasPrefix(name, "."):
		case err != nil:
			l.report.add(readProblem("it", err).At(where))
		case info.Mode&unix.S_IFMT == unix.S_IFDIR:
			l.role(name)
		}
	}
}

func (l *loader) role(name string) {
	dir := "roles/" + name
	beside, whole := l.beside(dir)
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
	l.decode(roleFileOf(name), content, &file)
	l.site.Roles = append(l.site.Roles, l.roleOf(name, &file, beside))
}

// beside reads all files in a role's directory. It reports whether there were no mistakes.
func (l *loader) beside(dir string) (beside map[string][]byte, whole bool) {
	beside, before := map[string][]byte{}, len(l.report.mistakes)
	top, err := l.dir.tree.Sub(dir)
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
		where := path.Join(dir, e.Path)
		// from the top, because symbolic links may lead anywhere inside the site directory
		content, err := l.dir.read(where, most)
		if err != nil {
			l.report.add(readProblem("it", err).At(where))
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
