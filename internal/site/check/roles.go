package check

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"orrery/internal/pattern"
	"orrery/internal/site"
)

// rolesOf is Site.RolesOf, computed once for each list of roles.
func (c *checker) rolesOf(declared []string) []*site.Role {
	key := strings.Join(declared, "\x00")
	roles, done := c.closures[key]
	if !done {
		roles = site.Closure(declared, func(name string) (*site.Role, bool) { return c.roles[name], c.roles[name] != nil })
		c.closures[key] = roles
	}
	return roles
}

func (c *checker) usedRoles() map[string]bool {
	used := map[string]bool{}
	for i := range c.site.Nodes {
		for _, r := range c.rolesOf(c.site.Nodes[i].Roles) {
			used[r.Name] = true
		}
	}
	return used
}

// role adds the mistake of a role that nobody has written.
func (c *checker) role(key []string, name string) {
	known := names(c.site.Roles, func(r *site.Role) string { return r.Name })
	cure := fmt.Sprintf("write roles/%s/role.toml", name)
	if nearest := c.nearest("role", name, known); nearest != "" {
		cure = fmt.Sprintf("did you mean %q? Otherwise %s", nearest, cure)
	}
	c.wrong(key, cure, "there is no role %q", name)
}

// Forms of the words in a role.
var (
	// debianPackage is a package as apt-get takes it, with architecture and version (Debian policy 5.6.1).
	debianPackage = pattern.New(`^[a-z0-9][a-z0-9+.-]*[a-z0-9+.](:[a-z0-9-]+)?(=[A-Za-z0-9.+:~-]+)?$`)
	unit          = pattern.New(`^[A-Za-z0-9:_.@\\-]+\.(service|socket|timer|path|target|mount)$`)
	variable      = pattern.New(`^[A-Za-z_][A-Za-z0-9_]*$`)
	account       = pattern.New(`^([a-z_][a-z0-9_-]*|[0-9]+)$`)
	ownership     = pattern.New(`^([a-z_][a-z0-9_-]*|[0-9]+)(:([a-z_][a-z0-9_-]*|[0-9]+))?$`)
)

func (c *checker) debian(key []string, name string) {
	if !debianPackage().MatchString(name) {
		c.wrong(key, "lower case letters, digits, +, - and .", "%q is no name of a Debian package", name)
	}
}

func (c *checker) owner(key []string, owner string) {
	if !ownership().MatchString(owner) {
		c.wrong(key, `such as "root:root"`, "owner %q is not user:group", owner)
	}
}

func (c *checker) roleWords(r *site.Role) {
	if !Label(r.Name) {
		c.wrong(at("role", r.Name), cureOfLabel(r.Name), "role name %q is not legal", r.Name)
	}
	for k, name := range r.Apt {
		c.debian(at("role", r.Name, "apt", k), name)
	}
	for _, name := range slices.Concat(r.Services, r.Active) {
		c.unit(r, name)
	}
	for _, name := range slices.Sorted(maps.Keys(r.Env)) {
		value, key := r.Env[name], at("role", r.Name, "env", name)
		switch {
		case !variable().MatchString(name):
			c.wrong(key, "letters, digits and _", "%q is no name of a variable", name)
		case strings.HasPrefix(name, "ORRERY_"):
			c.wrong(key, "choose another name", "variable %q: names with ORRERY_ are Orrery's own", name)
		case strings.ContainsAny(value, "\n\x00"):
			c.wrong(key, "a file can have more lines", "variable %q has more than one line", name)
		}
	}
}

func (c *checker) unit(r *site.Role, name string) {
	key := at("role", r.Name, "unit", name)
	switch {
	case name == "":
		c.wrong(key, `write name = "….service"`, "the service has no name")
	case !unit().MatchString(name):
		c.wrong(key, fmt.Sprintf("%q?", name+".service"), "%q is no name of a systemd unit", name)
	case slices.Contains(r.Services, name) && slices.Contains(r.Active, name):
		c.wrong(key, "name it once", "%s is both to run wherever the node does and only where it is live", name)
	}
}

func (c *checker) roleNeeds(r *site.Role) {
	for k, name := range r.NeedsRoles {
		if c.roles[name] == nil {
			c.role(at("role", r.Name, "needs", "roles", k), name)
		}
	}
}

func (c *checker) roleCycles() {
	const fresh, open, done = 0, 1, 2
	state := map[string]int{}
	var visit func(r *site.Role, path []string)
	visit = func(r *site.Role, path []string) {
		state[r.Name] = open
		path = append(path, r.Name)
		for k, name := range r.NeedsRoles {
			switch needed := c.roles[name]; {
			case needed == nil:
			case state[name] == open:
				cycle := append(slices.Clone(path[slices.Index(path, name):]), name)
				c.wrong(at("role", r.Name, "needs", "roles", k), "take one of these needs out", "roles need one another: %s", strings.Join(cycle, " → "))
			case state[name] == fresh:
				visit(needed, path)
			}
		}
		state[r.Name] = done
	}
	for i := range c.site.Roles {
		if r := &c.site.Roles[i]; state[r.Name] == fresh {
			visit(r, nil)
		}
	}
}
