package sitefile

import (
	"path"
	"path/filepath"
	"slices"
	"strconv"

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
	sources := sharedSources(l)
	defer func() {
		for _, from := range sources {
			from.tree.Close()
		}
	}()
	if len(sources) == 0 {
		return
	}
	// package check reports invalid names
	readNamed(l, l.wantedRoles(), check.ValidLabel, func(name string) bool {
		i := slices.IndexFunc(sources, func(from roleSource) bool { return from.has(name) })
		if i < 0 {
			return false // the role does not exist
		}
		l.report.shared[name] = filepath.Join(sources[i].file, name)
		l.role(sources[i], name)
		return true
	})
}

// readNamed reads the roles with these names, and those that they name, unless the site has them already. Only
// names that fit count. Read reads a role and reports whether there is one.
func readNamed(l *loader, names []string, fits, read func(name string) bool) {
	known := map[string]bool{}
	for i := range l.site.Roles {
		known[l.site.Roles[i].Name] = true
	}
	for len(names) > 0 && len(known) <= maxRoles {
		name := names[0]
		names = names[1:]
		if known[name] || !fits(name) {
			continue
		}
		known[name] = true
		if read(name) {
			names = append(names, rolesNamedBy(&l.site.Roles[len(l.site.Roles)-1])...)
		}
	}
}

// has reports whether the directory has a role. Only a directory with a role.toml counts, because
// roles_path may name any directory.
func (s roleSource) has(name string) bool {
	info, err := s.tree.Stat(path.Join(s.dir, name, roleFileName))
	return err == nil && info.Mode&unix.S_IFMT == unix.S_IFREG
}

// sharedSources opens the directories in roles_path, in their order.
func sharedSources(l *loader) (all []roleSource) {
	at, depth := l.report.roots[Name].Find("site", "roles_path")
	if depth < 2 || l.report.bad[at] {
		return nil
	}
	d := l.chain.of(at).dir
	for i, said := range l.file.Site.RolesPath {
		if said == "" {
			continue
		}
		item, _ := at.Find(strconv.Itoa(i))
		from, p := roleSource{}, (*problem.Problem)(nil)
		if isRepository(said) {
			var r Repository
			if r, p = parseRepository(said); p == nil {
				from, p = d.repository(&r)
				l.repositories = append(l.repositories, r)
				said = path.Join(FetchedRoles, r.Commit, r.within)
			}
		} else {
			from, p = d.rolesPath(said)
		}
		if p != nil {
			l.report.addAt(Name, item, p)
			continue
		}
		from.kept, from.file = d.kept+keptRoles, l.chain.label(at, said)
		if all = append(all, from); d.copied {
			break // a copy has the roles of all of them in one directory
		}
	}
	return all
}

// repository opens the directory of roles of a fetched repository.
func (d *directory) repository(r *Repository) (roleSource, *problem.Problem) {
	r.Site = d.home
	if d.copied {
		return d.rolesPath("")
	}
	root, err := d.tree.Sub(path.Join(FetchedRoles, r.Commit))
	if r.Stored = err == nil; !r.Stored {
		return roleSource{}, mistake("roles_path: commit %s of %s is not fetched", r.Commit, r.URL).
			Try("orrery role fetch fetches it into the site directory")
	}
	defer root.Close()
	if root, err = root.Sub(r.within); err != nil {
		return roleSource{}, mistake("roles_path: commit %s of %s has no directory %s", r.Commit, r.URL, r.within).
			Try("correct what follows #")
	}
	return roleSource{tree: root, dir: "."}, nil
}

// rolesPath opens the directory of shared roles.
func (d *directory) rolesPath(said string) (roleSource, *problem.Problem) {
	if d.copied {
		root, err := d.tree.Sub(".")
		return roleSource{tree: root, dir: keptRoles}, readProblem("it", err)
	}
	root, err := tree.OpenBeneath(d.absPath(said) + "/.")
	if err != nil {
		return roleSource{}, mistake("roles_path %q cannot be read", said).Because(problem.PathErrorCause(err)).
			Try("name a directory that has a directory for each role, with its role.toml")
	}
	return roleSource{tree: root, dir: "."}, nil
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
