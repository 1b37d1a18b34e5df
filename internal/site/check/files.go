package check

import (
	"fmt"
	"maps"
	"net/netip"
	"net/url"
	"path"
	"slices"
	"strings"

	"orrery/internal/site"
)

// kernels are directories of the kernel: nothing that is put there stays.
var kernels = []string{"/proc", "/sys", "/dev"}

// ours are files of Orrery's, which puts them on every node.
var ours = []string{"/etc/orrery", "/etc/hosts", "/etc/hostname", "/etc/machine-id", "/opt/orrery/venv"}

// target checks where on a node something is put.
func (c *checker) target(key []string, kind, p string) {
	inside := func(dir string) bool { return p == dir || strings.HasPrefix(p, dir+"/") }
	switch {
	case p == "":
		c.wrong(key, `write path = "/…"`, "the %s has no path", kind)
	case !path.IsAbs(p) || path.Clean(p) != p || p == "/" || strings.ContainsAny(p, "\x00\n"):
		c.wrong(key, fmt.Sprintf("write path = %q", path.Join("/", "etc", path.Base(p))), "path %q is no plain absolute path", p)
	case slices.ContainsFunc(kernels, inside):
		c.wrong(key, "put it elsewhere", "path %q is the kernel's", p)
	case slices.ContainsFunc(ours, inside):
		c.wrong(key, "put it elsewhere", "path %q is Orrery's own", p)
	}
}

func (c *checker) roleFiles(r *site.Role) {
	for k, f := range r.Files {
		c.target(at("role", r.Name, "file", k, "path"), "file", f.Path)
		c.owner(at("role", r.Name, "file", k, "owner"), f.Owner)
	}
}

func (c *checker) roleChanges(r *site.Role) {
	for k, p := range r.Changes {
		if !path.IsAbs(p) || path.Clean(p) != p || p == "/" {
			c.wrong(at("role", r.Name, "changes", k), `such as "/etc/portal.json", or a directory`, "%q in changes is no plain absolute path", p)
		}
	}
}

func (c *checker) roleVolumes(r *site.Role) {
	for k, v := range r.Volumes {
		if !word().MatchString(v.Name) {
			c.wrong(at("role", r.Name, "volume", k, "name"), `letters, digits, "_", "." and "-"`, "volume name %q is no legal name of a directory", v.Name)
		}
		c.target(at("role", r.Name, "volume", k, "path"), "volume", v.Path)
		c.owner(at("role", r.Name, "volume", k, "owner"), v.Owner)
		switch {
		case v.Quarantine == "":
		case v.Quarantine != site.Empty && v.Quarantine != site.Snapshot:
			c.wrong(at("role", r.Name, "volume", k, "quarantine"), `write "snapshot" for a copy of what is on it or "empty"`,
				"quarantine = %q does not say what the volume begins with there", v.Quarantine)
		case !v.Exclusive:
			c.wrong(at("role", r.Name, "volume", k, "quarantine"), "take it out, or write exclusive = true",
				"quarantine = %q is of no use without exclusive: the nodes in quarantine have the volume itself", v.Quarantine)
		}
	}
}

func (c *checker) roleSteps(r *site.Role) {
	for k, s := range r.Steps {
		if !slices.Contains([]string{site.Build, site.Boot, site.Started, site.Active}, s.When) {
			c.wrong(at("role", r.Name, "step", k, "when"), `write when = "build" for what goes into the layer, when = "boot" for what is done on the node, `+
				`when = "started" for what needs its services, or when = "active" for what only a live node does`, "when = %q does not say when the step is done", s.When)
		}
		if !account().MatchString(s.User) {
			c.wrong(at("role", r.Name, "step", k, "user"), `such as "root"`, "user %q is not legal", s.User)
		}
		if len(s.Interpreter) > 0 && !path.IsAbs(s.Interpreter[0]) {
			c.wrong(at("role", r.Name, "step", k, "interpreter"), `such as ["/usr/bin/env", "python3"]`, "interpreter %q is not an absolute path", s.Interpreter[0])
		}
	}
}

func (c *checker) roleHealth(r *site.Role) {
	for k, h := range r.Health {
		key := at("role", r.Name, "health", k)
		kinds := 0
		for _, given := range []bool{h.TCP != 0, h.HTTP != "", len(h.Command) > 0} {
			if given {
				kinds++
			}
		}
		switch {
		case kinds != 1:
			c.wrong(key, "give one of them", "the health check has %d of http, tcp and command", kinds)
		case h.TCP < 0 || h.TCP > 65535:
			c.wrong(append(key, "tcp"), "1 to 65535", "port %d is out of range", h.TCP)
		case h.HTTP != "" && !isHTTP(h.HTTP):
			c.wrong(append(key, "http"), `such as "http://127.0.0.1:80/healthz"`, "%q is no URL of a web page", h.HTTP)
		case h.HTTP != "" && !c.known(h.HTTP):
			c.wrong(append(key, "http"), "write localhost, an address, or the name of the node that has the role", "the health check %q needs a name looked up", h.HTTP)
		case len(h.Command) > 0 && h.Command[0] == "":
			c.wrong(append(key, "command"), `such as ["pg_isready"]`, "the command has no name")
		}
		if h.Timeout > h.Within {
			c.wrong(append(key, "timeout"), "the node must become healthy within more than one try", "timeout %s is longer than within %s", h.Timeout, h.Within)
		}
	}
}

func isHTTP(text string) bool {
	u, err := url.Parse(text)
	return err == nil && (u.Scheme == "http" || u.Scheme == "https") && u.Host != ""
}

// known reports whether the host of a URL can be told without asking a resolver.
func (c *checker) known(text string) bool {
	u, err := url.Parse(text)
	if err != nil {
		return false
	}
	name := u.Hostname()
	_, err = netip.ParseAddr(name)
	return err == nil || name == "localhost" || slices.ContainsFunc(c.site.Nodes, func(n site.Node) bool { return n.Name == name })
}

// together checks roles that meet on a node, once for each set of roles that some node has.
func (c *checker) together() {
	told := map[string]bool{}
	done := map[string]bool{}
	for i := range c.site.Nodes {
		n := &c.site.Nodes[i]
		if key := strings.Join(n.Roles, "\x00"); !done[key] {
			done[key] = true
			c.meeting(c.rolesOf(n.Roles), n.Name, told)
		}
	}
}

// A claim is what one role puts on a node, where no other may put another.
type claim struct {
	key   []string
	role  string
	value string // two claims of the same value do not quarrel
}

func (c *checker) meeting(roles []*site.Role, node string, told map[string]bool) {
	claims := map[string]claim{}
	put := func(what string, mine claim) {
		first, taken := claims[what]
		if !taken {
			claims[what] = mine
			return
		}
		pair := strings.Join(first.key, "\x00") + "\x00" + strings.Join(mine.key, "\x00")
		if told[pair] || mine.value != "" && mine.value == first.value {
			return
		}
		told[pair] = true
		text := fmt.Sprintf("%s is already put on node %s by role %s", what, node, first.role)
		if mine.value != "" {
			text = fmt.Sprintf("%s is %s here, but role %s on the same node %s has %s", what, mine.value, first.role, node, first.value)
		}
		c.add(Mistake{Key: mine.key, Other: first.key, What: text, Cure: "let one role have it and the other need that role"})
	}
	for _, r := range roles {
		for k, f := range r.Files {
			put("file "+f.Path, claim{at("role", r.Name, "file", k, "path"), r.Name, ""})
		}
		for k, v := range r.Volumes {
			put("a volume at "+v.Path, claim{at("role", r.Name, "volume", k, "path"), r.Name, ""})
		}
		for _, name := range r.Services {
			put("when of "+name, claim{at("role", r.Name, "unit", name), r.Name, `"boot"`})
		}
		for _, name := range r.Active {
			if !slices.Contains(r.Services, name) {
				put("when of "+name, claim{at("role", r.Name, "unit", name), r.Name, `"active"`})
			}
		}
		for k, x := range r.Secrets {
			put("secret "+x.Name, claim{at("role", r.Name, "secret", k), r.Name, fmt.Sprintf("of %s, mode %04o", x.Owner, x.Mode)})
		}
		for _, name := range slices.Sorted(maps.Keys(r.Env)) {
			put("variable "+name, claim{at("role", r.Name, "env", name), r.Name, fmt.Sprintf("%q", r.Env[name])})
		}
	}
}
