package sitefile

import (
	"path"
	"path/filepath"
	"slices"

	"golang.org/x/sys/unix"

	"orrery/internal/problem"
	"orrery/internal/site"
	"orrery/internal/site/check"
	"orrery/internal/tree"
)

// keptRoles is the directory in a copy of a site directory with the roles that the original reads from
// its roles_path.
const keptRoles = ".roles_path"

// sharedRoles reads the roles that the site uses and does not have itself from its roles_path, which
// several sites may share. Others there are not read, so their mistakes do not matter to the site.
//
// Like the site directory, that directory may come from a stranger: it is read through a tree of its
// own, which links do not leave, and within the limits for all files of the site.
func (l *loader) sharedRoles() {
	said := l.file.Site.RolesPath
	if said == "" {
		return
	}
	from, p := l.dir.rolesPath(said)
	if p != nil {
		at, _ := l.report.roots[Name].Find("site", "roles_path")
		l.report.addAt(Name, at, p)
		return
	}
	defer from.tree.Close()
	known := map[string]bool{}
	for i := range l.site.Roles {
		known[l.site.Roles[i].Name] = true
	}
	wanted := l.wantedRoles()
	for len(wanted) > 0 && len(known) <= maxRoles {
		name := wanted[0]
		wanted = wanted[1:]
		if known[name] || !check.ValidLabel(name) { // which package check reports
			continue
		}
		known[name] = true
		// Only a directory with a role.toml is read, because roles_path may name any directory.
		if info, err := from.tree.Stat(path.Join(from.dir, name, roleFileName)); err != nil ||
			info.Mode&unix.S_IFMT != unix.S_IFREG {
			continue // the role does not exist
		}
		l.report.shared[name] = filepath.Join(said, name)
		l.role(from, name)
		wanted = append(wanted, rolesNamedBy(&l.site.Roles[len(l.site.Roles)-1])...)
	}
}

// rolesPath opens the directory of shared roles.
func (d *directory) rolesPath(said string) (roleSource, *problem.Problem) {
	if d.copied {
		root, err := d.tree.Sub(".")
		return roleSource{root, keptRoles, keptRoles}, readProblem("it", err)
	}
	root, err := tree.OpenBeneath(d.absPath(said) + "/.")
	if err != nil {
		return roleSource{}, mistake("roles_path %q cannot be read", said).Because(problem.PathErrorCause(err)).
			Try("name a directory that has a directory for each role, with its role.toml")
	}
	return roleSource{root, ".", keptRoles}, nil
}

// wantedRoles returns the roles that the site's nodes, releases and own roles name.
func (l *loader) wantedRoles() (names []string) {
	seen := map[string]bool{}
	add := func(more ...string) {
		for _, name := range more {
			if name != "" && !seen[name] {
				seen[name] = true
				names = append(names, name)
			}
		}
	}
	for i := range l.site.Nodes {
		add(l.site.Nodes[i].Roles...)
		add(l.site.Nodes[i].SimulatedBy)
	}
	for i := range l.site.Releases {
		for _, name := range l.site.Releases[i].Roles {
			add(name)
		}
	}
	for _, t := range l.file.Secrets {
		add(t.Value.Readers...)
	}
	for i := range l.site.Roles {
		add(rolesNamedBy(&l.site.Roles[i])...)
	}
	slices.Sort(names) // so that mistakes are always reported in the same order
	return names
}

func rolesNamedBy(r *site.Role) []string { return append(slices.Clone(r.NeedsRoles), r.SimulatedBy) }
