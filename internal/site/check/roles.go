package check

import (
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"orrery/internal/problem"
	"orrery/internal/site"
	"orrery/internal/text/pattern"
	"orrery/roles"
)

// addUnknownRole adds the mistake that a role does not exist.
func addUnknownRole(ix *index, found *findings, key []string, name string) {
	if roles.IsShipped(name) || name == roles.Namespace {
		cure := "orrery role ls lists the roles that ship with Orrery"
		if near := NearestShipped(name); near != "" && near != name {
			cure = fmt.Sprintf("did you mean %q? %s", near, cure)
		}
		found.report(key, cure, "role %q does not exist", name)
		return
	}
	nearest := found.nearest("role", name, names(ix.Roles, func(r *site.Role) string { return r.Name }))
	if nearest == "" {
		nearest = NearestShipped(name)
	}
	cure := fmt.Sprintf("write roles/%s/role.toml", name)
	if nearest != "" {
		cure = fmt.Sprintf("did you mean %q? Otherwise %s", nearest, cure)
	}
	found.report(key, cure, "role %q does not exist", name)
}

// NearestShipped returns the role that ships with Orrery whose name, with or without "orrery/", is closest to
// name, or "" if none is similar.
func NearestShipped(name string) string {
	const prefix = roles.Namespace + "/"
	labels := roles.Names()
	for i, full := range labels {
		labels[i] = strings.TrimPrefix(full, prefix)
	}
	if label := problem.Suggest(strings.TrimPrefix(name, prefix), labels); label != "" {
		return prefix + label
	}
	return ""
}

// checkRoles checks each role separately.
func checkRoles(ix *index, found *findings) {
	for r := range each(ix.Roles) {
		checkRoleWords(found, r)
		checkRoleNeeds(ix, found, r)
		checkRoleFiles(found, r)
		checkRoleSteps(found, r)
		checkRoleChanges(found, r)
		checkRoleVolumes(found, r)
		checkRoleHealth(ix, found, r)
		checkRoleParams(found, r)
	}
}

// Patterns for values in a role.
var (
	// debianPackage matches an argument of apt-get install: a package with optional architecture
	// and version (Debian policy 5.6.1).
	debianPackage = pattern.New(`^[a-z0-9][a-z0-9+.-]*[a-z0-9+.](:[a-z0-9-]+)?(=[A-Za-z0-9.+:~-]+)?$`)
	unit          = pattern.New(`^[A-Za-z0-9:_.@\\-]+\.(service|socket|timer|path|target|mount)$`)
	variable      = pattern.New(`^[A-Za-z_][A-Za-z0-9_]*$`)
	account       = pattern.New(`^([a-z_][a-z0-9_-]*|[0-9]+)$`)
	ownership     = pattern.New(`^([a-z_][a-z0-9_-]*|[0-9]+)(:([a-z_][a-z0-9_-]*|[0-9]+))?$`)
)

func checkDebianPackage(found *findings, key []string, name string) {
	if !debianPackage().MatchString(name) {
		found.report(key, "lower case letters, digits, +, - and .", "%q is not the name of a Debian package", name)
	}
}

func checkOwner(found *findings, key []string, owner string) {
	if !ownership().MatchString(owner) {
		found.report(key, `such as "root:root"`, "owner %q is not user:group", owner)
	}
}

func checkRoleWords(found *findings, r *site.Role) {
	if !ValidLabel(strings.TrimPrefix(r.Name, roles.Namespace+"/")) {
		found.report(at("role", r.Name), labelCure(r.Name), "role name %q is not valid", r.Name)
	}
	for k, name := range r.Apt {
		checkDebianPackage(found, at("role", r.Name, "apt", k), name)
	}
	for _, name := range slices.Concat(r.Services, r.Active) {
		checkUnit(found, r, name)
	}
	for _, name := range slices.Sorted(maps.Keys(r.Env)) {
		value, key := r.Env[name], at("role", r.Name, "env", name)
		switch {
		case !variable().MatchString(name):
			found.report(key, "letters, digits and _", "%q is not a valid variable name", name)
		case strings.HasPrefix(name, "ORRERY_"):
			found.report(key, "choose another name", "variable %q: Orrery reserves names that begin with ORRERY_", name)
		case strings.ContainsAny(value, "\n\x00"):
			found.report(key, "use a file for several lines", "variable %q has more than one line", name)
		}
	}
}

func checkUnit(found *findings, r *site.Role, name string) {
	key := at("role", r.Name, "unit", name)
	switch {
	case name == "":
		found.report(key, `write name = "….service"`, "the service has no name")
	case !unit().MatchString(name):
		found.report(key, fmt.Sprintf("did you mean %q?", name+".service"), "%q is not the name of a systemd unit",
			name)
	case slices.Contains(r.Services, name) && slices.Contains(r.Active, name):
		found.report(key, "list it once", "%s is in both boot and active services", name)
	}
}

func checkRoleNeeds(ix *index, found *findings, r *site.Role) {
	for k, name := range r.NeedsRoles {
		if ix.roleByName[name] == nil {
			addUnknownRole(ix, found, at("role", r.Name, "needs", "roles", k), name)
		}
	}
}

func checkRoleCycles(ix *index, found *findings) {
	const fresh, open, done = 0, 1, 2
	state := map[string]int{}
	var visit func(r *site.Role, path []string)
	visit = func(r *site.Role, path []string) {
		state[r.Name] = open
		path = append(path, r.Name)
		for k, name := range r.NeedsRoles {
			switch needed := ix.roleByName[name]; {
			case needed == nil:
			case state[name] == open:
				cycle := append(slices.Clone(path[slices.Index(path, name):]), name)
				found.report(at("role", r.Name, "needs", "roles", k), "remove one of these needs",
					"roles need one another: %s",
					strings.Join(cycle, " → "))
			case state[name] == fresh:
				visit(needed, path)
			}
		}
		state[r.Name] = done
	}
	for r := range each(ix.Roles) {
		if state[r.Name] == fresh {
			visit(r, nil)
		}
	}
}

func checkRoleSteps(found *findings, r *site.Role) {
	for k, s := range r.Steps {
		if !slices.Contains([]string{site.Build, site.Boot, site.Started, site.Active}, s.When) {
			found.report(at("role", r.Name, "step", k, "when"),
				`write when = "build" to run it for the layer, when = "boot" to run it on the node, `+
					`when = "started" to run it after the services, or when = "active" to run it only on a live node`,
				"when = %q is unknown", s.When)
		}
		if !account().MatchString(s.User) {
			found.report(at("role", r.Name, "step", k, "user"), `such as "root"`, "user %q is not valid", s.User)
		}
		if len(s.Interpreter) > 0 && !path.IsAbs(s.Interpreter[0]) {
			found.report(at("role", r.Name, "step", k, "interpreter"), `such as ["/usr/bin/env", "python3"]`,
				"interpreter %q is not an absolute path", s.Interpreter[0])
		}
	}
}
