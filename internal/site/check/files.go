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

// checkTarget checks where on a node something is put.
func checkTarget(found *findings, key []string, kind, p string) {
	inside := func(dir string) bool { return p == dir || strings.HasPrefix(p, dir+"/") }
	switch {
	case p == "":
		found.wrong(key, `write path = "/…"`, "the %s has no path", kind)
	case !path.IsAbs(p) || path.Clean(p) != p || p == "/" || strings.ContainsAny(p, "\x00\n"):
		found.wrong(key, fmt.Sprintf("write path = %q", path.Join("/", "etc", path.Base(p))), "path %q is no plain absolute path", p)
	case slices.ContainsFunc(kernels, inside):
		found.wrong(key, "put it elsewhere", "path %q is the kernel's", p)
	case slices.ContainsFunc(ours, inside):
		found.wrong(key, "put it elsewhere", "path %q is Orrery's own", p)
	}
}

func checkRoleFiles(found *findings, r *site.Role) {
	for k, f := range r.Files {
		checkTarget(found, at("role", r.Name, "file", k, "path"), "file", f.Path)
		checkOwner(found, at("role", r.Name, "file", k, "owner"), f.Owner)
	}
}

func checkRoleChanges(found *findings, r *site.Role) {
	for k, p := range r.Changes {
		if !path.IsAbs(p) || path.Clean(p) != p || p == "/" {
			found.wrong(at("role", r.Name, "changes", k), `such as "/etc/portal.json", or a directory`, "%q in changes is no plain absolute path", p)
		}
	}
}

func checkRoleVolumes(found *findings, r *site.Role) {
	for k, v := range r.Volumes {
		if !word().MatchString(v.Name) {
			found.wrong(at("role", r.Name, "volume", k, "name"), `letters, digits, "_", "." and "-"`, "volume name %q is no legal name of a directory", v.Name)
		}
		checkTarget(found, at("role", r.Name, "volume", k, "path"), "volume", v.Path)
		checkOwner(found, at("role", r.Name, "volume", k, "owner"), v.Owner)
		switch {
		case v.Quarantine == "":
		case v.Quarantine != site.Empty && v.Quarantine != site.Snapshot:
			found.wrong(at("role", r.Name, "volume", k, "quarantine"), `write "snapshot" for a copy of what is on it or "empty"`,
				"quarantine = %q does not say what the volume begins with there", v.Quarantine)
		case !v.Exclusive:
			found.wrong(at("role", r.Name, "volume", k, "quarantine"), "take it out, or write exclusive = true",
				"quarantine = %q is of no use without exclusive: the nodes in quarantine have the volume itself", v.Quarantine)
		}
	}
}

func checkRoleSteps(found *findings, r *site.Role) {
	for k, s := range r.Steps {
		if !slices.Contains([]string{site.Build, site.Boot, site.Started, site.Active}, s.When) {
			found.wrong(at("role", r.Name, "step", k, "when"), `write when = "build" for what goes into the layer, when = "boot" for what is done on the node, `+
				`when = "started" for what needs its services, or when = "active" for what only a live node does`, "when = %q does not say when the step is done", s.When)
		}
		if !account().MatchString(s.User) {
			found.wrong(at("role", r.Name, "step", k, "user"), `such as "root"`, "user %q is not legal", s.User)
		}
		if len(s.Interpreter) > 0 && !path.IsAbs(s.Interpreter[0]) {
			found.wrong(at("role", r.Name, "step", k, "interpreter"), `such as ["/usr/bin/env", "python3"]`, "interpreter %q is not an absolute path", s.Interpreter[0])
		}
	}
}

func checkRoleHealth(ix *index, found *findings, r *site.Role) {
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
			found.wrong(key, "give one of them", "the health check has %d of http, tcp and command", kinds)
		case h.TCP < 0 || h.TCP > 65535:
			found.wrong(append(key, "tcp"), "1 to 65535", "port %d is out of range", h.TCP)
		case h.HTTP != "" && !isHTTP(h.HTTP):
			found.wrong(append(key, "http"), `such as "http://127.0.0.1:80/healthz"`, "%q is no URL of a web page", h.HTTP)
		case h.HTTP != "" && !isLookedUp(ix, h.HTTP):
			found.wrong(append(key, "http"), "write localhost, an address, or the name of the node that has the role", "the health check %q needs a name looked up", h.HTTP)
		case len(h.Command) > 0 && h.Command[0] == "":
			found.wrong(append(key, "command"), `such as ["pg_isready"]`, "the command has no name")
		}
		if h.Timeout > h.Within {
			found.wrong(append(key, "timeout"), "the node must become healthy within more than one try", "timeout %s is longer than within %s", h.Timeout, h.Within)
		}
	}
}

func isHTTP(text string) bool {
	u, err := url.Parse(text)
	return err == nil && (u.Scheme == "http" || u.Scheme == "https") && u.Host != ""
}

// isLookedUp reports whether the host of a URL can be told without asking a resolver.
func isLookedUp(ix *index, text string) bool {
	u, err := url.Parse(text)
	if err != nil {
		return false
	}
	name := u.Hostname()
	_, err = netip.ParseAddr(name)
	return err == nil || name == "localhost" || slices.ContainsFunc(ix.Nodes, func(n site.Node) bool { return n.Name == name })
}

// checkRolesTogether checks roles that meet on a node, once for each set of roles that some node has.
func checkRolesTogether(ix *index, found *findings) {
	told := map[string]bool{}
	done := map[string]bool{}
	for n := range each(ix.Nodes) {
		if key := strings.Join(n.Roles, "\x00"); !done[key] {
			done[key] = true
			checkMeeting(found, ix.rolesOf(n.Roles), n.Name, told)
		}
	}
}

// A claim is what one role puts on a node, where no other may put another.
type claim struct {
	key   []string
	role  string
	value string // two claims of the same value do not quarrel
}

func checkMeeting(found *findings, roles []*site.Role, node string, told map[string]bool) {
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
		found.add(Mistake{Key: mine.key, Other: first.key, What: text, Cure: "let one role have it and the other need that role"})
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
