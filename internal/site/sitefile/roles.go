package sitefile

import (
	"errors"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"orrery/internal/problem"
	"orrery/internal/site"
)

const roleFileName = "role.toml"

func roleFileOf(role string) string { return "roles/" + role + "/" + roleFileName }

// roles reads every role of the site directory, also those that no node has.
func (l *loader) roles() {
	entries, err := os.ReadDir(filepath.Join(l.dir, "roles"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		l.report.add(mistake("cannot be read").At("roles").Because(err))
	}
	for _, e := range entries { // sorted by name
		info, err := os.Stat(filepath.Join(l.dir, "roles", e.Name()))
		if err == nil && info.IsDir() && !strings.HasPrefix(e.Name(), ".") {
			l.role(e.Name())
		}
	}
}

func (l *loader) role(name string) {
	dir := "roles/" + name
	root, err := os.OpenRoot(filepath.Join(l.dir, dir))
	if err != nil {
		l.report.add(mistake("cannot be read").At(dir).Because(err))
		return
	}
	defer root.Close()
	beside := l.beside(dir, root.FS())
	content, ok := beside[roleFileName]
	if !ok {
		l.report.add(mistake("there is no %s in the role's directory", roleFileName).At(dir).Try("write one or remove the directory"))
		l.site.Roles = append(l.site.Roles, site.Role{Name: name, Dir: dir}) // so that nodes that have it are not wrong as well
		return
	}
	delete(beside, roleFileName)
	var file roleFile
	l.decode(roleFileOf(name), content, &file)
	l.site.Roles = append(l.site.Roles, l.roleOf(name, &file, beside))
}

// beside reads all files of a role's directory. That nothing outside of it is read os.Root sees to.
func (l *loader) beside(dir string, files fs.FS) map[string][]byte {
	beside := map[string][]byte{}
	err := fs.WalkDir(files, ".", func(name string, e fs.DirEntry, err error) error {
		where := path.Join(dir, name)
		if err != nil {
			l.report.add(mistake("cannot be read").At(where).Because(err))
			return nil
		}
		switch {
		case e.IsDir() && e.Name() == "__pycache__":
			return fs.SkipDir
		case e.IsDir() || leftover(e.Name()):
			return nil
		}
		info, err := fs.Stat(files, name) // of what a symbolic link leads to
		switch {
		case err != nil:
			l.report.add(mistake("it leads out of the role's directory or nowhere").At(where).Try("copy the file here"))
			return nil
		case !info.Mode().IsRegular():
			l.report.add(mistake("this is no file").At(where).Try("a role's directory holds files and directories only"))
			return nil
		case info.Size() > maxFile:
			l.report.add(mistake("the file has %d MiB, more than %d", info.Size()>>20, maxFile>>20).At(where).
				Try("put it on a volume or in a package"))
			return nil
		}
		content, err := fs.ReadFile(files, name)
		if err != nil {
			l.report.add(mistake("cannot be read").At(where).Because(err))
			return nil
		}
		beside[name] = content
		return nil
	})
	if err != nil {
		l.report.add(mistake("cannot be read").At(dir).Because(err))
	}
	return beside
}

// leftover tells what tools leave behind: it must not make another layer.
func leftover(name string) bool {
	return strings.HasSuffix(name, "~") || strings.HasPrefix(name, ".") && strings.HasSuffix(name, ".swp")
}

// besideNamed gives the content of a file that a role names.
func (l *loader) besideNamed(role *site.Role, key, name string, at *place) []byte {
	file := roleFileOf(role.Name)
	if name == "" || !filepath.IsLocal(name) {
		l.report.wrong(file, at, mistake("%s = %q is not in the role's directory", key, name).Try("move it beside %s", roleFileName))
		return nil
	}
	content, ok := role.Beside[path.Clean(name)]
	if !ok {
		p := mistake("%s = %q: there is no such file in %s", key, name, role.Dir)
		if nearest := problem.Nearest(name, slices.Sorted(maps.Keys(role.Beside))); nearest != "" {
			p.Try("%q is the nearest", nearest)
		} else {
			p.Try("write it")
		}
		l.report.wrong(file, at, p)
	}
	return content
}
