package sitefile

import (
	"path"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"orrery/internal/problem"
	"orrery/internal/site"
	"orrery/internal/site/check"
	"orrery/roles"
)

// keptShipped is the directory in a copy of a site directory with the roles that ship with Orrery. The copy
// has those of the program that made it, so another version of the program reads the same site from it.
const keptShipped = ".shipped_roles"

// ShippedRole returns a role that ships with Orrery, by its name with or without "orrery/".
func ShippedRole(name string) (*site.Role, error) {
	full := roles.Namespace + "/" + strings.TrimPrefix(name, roles.Namespace+"/")
	files := roles.Files(full)
	if files == nil {
		p := problem.New(problem.Usage, "no role %q ships with Orrery", name)
		if near := check.NearestShipped(name); near != "" {
			return nil, p.Try("did you mean %q?", near)
		}
		return nil, p.Try("orrery role ls lists them")
	}
	l := newLoader(&directory{})
	l.report.shared[full] = full
	addRole(l, full, files, true)
	if err := l.report.list().OrNil(); err != nil {
		return nil, err
	}
	return &l.site.Roles[0], nil
}

// A shippedReader reads the roles that ship with Orrery and that a site uses.
type shippedReader struct{ *loader }

// readAll reads the shipped roles that the site's nodes, releases and other roles name, and those whose
// parameters it sets. Package check reports those that do not exist.
func (l shippedReader) readAll() {
	if _, taken := l.site.Role(roles.Namespace); taken && !l.dir.copied {
		l.report.add(reservedRole().At(l.report.roleDir(roles.Namespace))) // in roles_path
	}
	readNamed(l.loader, append(l.wantedRoles(), l.withSettings()...), roles.IsShipped, l.read)
}

// withSettings returns the shipped roles whose parameters the site file sets. They are read even if no node
// has them, so that mistakes in their parameters are reported.
func (l shippedReader) withSettings() (names []string) {
	add := func(all site.Settings) {
		for name := range all {
			if roles.IsShipped(name) {
				names = append(names, name)
			}
		}
	}
	add(l.site.Settings)
	for i := range l.file.Groups {
		add(l.file.Groups[i].Value.Settings)
	}
	for i := range l.site.Nodes {
		add(l.site.Nodes[i].Settings)
	}
	slices.Sort(names) // so that roles are always in the same order
	return names
}

// read reads a role and reports whether there is one. A copy of a site directory has its own.
func (l shippedReader) read(name string) bool {
	if !check.ValidLabel(strings.TrimPrefix(name, roles.Namespace+"/")) {
		return false
	}
	if l.dir.copied {
		info, err := l.dir.tree.Stat(path.Join(keptShipped, name, roleFileName))
		if err != nil || info.Mode&unix.S_IFMT != unix.S_IFREG {
			return false
		}
		l.report.shared[name] = name
		l.role(roleSource{tree: l.dir.tree, dir: keptShipped, kept: keptShipped}, name)
		return true
	}
	files := roles.Files(name)
	if files == nil {
		return false
	}
	for file, content := range files {
		l.dir.files[path.Join(keptShipped, name, file)] = content
	}
	l.report.shared[name] = name
	addRole(l.loader, name, files, true)
	return true
}

// reservedRole returns the problem for a role of a site that has the name of those that ship with Orrery.
func reservedRole() *problem.Problem {
	return mistake("roles named %s/… ship with Orrery, and a site cannot replace them", roles.Namespace).
		Try("rename the directory: a changed copy (orrery role copy) is a role of the site, with a name of its own")
}
