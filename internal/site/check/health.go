package check

import (
	"fmt"
	"net/netip"
	"net/url"
	"path"
	"slices"
	"strconv"
	"strings"

	"orrery/internal/problem"
	"orrery/internal/site"
	"orrery/internal/site/params"
)

func checkRoleHealth(ix *index, found *findings, r *site.Role) {
	for k, h := range r.Health {
		key := at("role", r.Name, "health", k)
		if given := givenKinds(&h); given != 1 {
			found.report(key, "set one of them", "the health check has %d of %s", given, strings.Join(site.HealthKinds, ", "))
		} else if !params.HasParams(h) {
			checkHealthSubject(ix, &h, func(kind, cure, what string) {
				found.report(append(key, kind), cure, "%s", what)
			})
		} else if mistake := checkHealthParams(r, &h); mistake != nil {
			found.report(append(key, h.Kind()), mistake.Cure, "%s", mistake.What)
		}
		if h.Timeout > h.Within {
			found.report(append(key, "timeout"), "within must allow more than one try",
				"timeout %s is longer than within %s", h.Timeout, h.Within)
		}
	}
}

// checkHealthParams returns the mistake in the parameters that a health check contains, or nil.
func checkHealthParams(r *site.Role, h *site.HealthCheck) *problem.Problem {
	_, mistake := params.Expand(h.Subject(h.Kind()), func(name string) (string, *problem.Problem) {
		i := slices.IndexFunc(r.Params, func(p site.Param) bool { return p.Name == name })
		switch {
		case i < 0:
			return "", problem.New(problem.Mistake, "the role has no parameter %q", name).Try("declare it in [[param]]")
		case r.Params[i].Type == "list":
			return "", problem.New(problem.Mistake, "parameter %s is a list", name).Try("use a parameter with one value")
		case h.TCPParam != "" && r.Params[i].Type != "int":
			return "", problem.New(problem.Mistake, "parameter %s is not a number", name).Try(`give it type = "int"`)
		}
		return "", nil
	})
	return mistake
}

// checkHealthOfNodes checks the health checks that contain parameters, with the values of each node. Each
// mistake is reported once.
func checkHealthOfNodes(ix *index, found *findings) {
	if !slices.ContainsFunc(ix.Roles, func(r site.Role) bool { return slices.ContainsFunc(r.Health, params.HasParams) }) {
		return
	}
	checked := map[string]bool{}
	for n := range each(ix.Nodes) {
		for _, r := range ix.RolesOf(n) {
			for k, h := range params.Health(ix.Site, n, r) {
				id := r.Name + "\x00" + strconv.Itoa(k) + "\x00" + h.Subject(h.Kind())
				if !params.HasParams(r.Health[k]) || checked[id] {
					continue
				}
				checked[id] = true
				if checkHealthParams(r, &r.Health[k]) == nil && !params.HasParams(h) {
					checkHealthSubject(ix, &h, func(_, cure, what string) {
						found.report(atNode(n), cure, "node %s: role %s: %s", n.Name, r.Name, what)
					})
				}
			}
		}
	}
}

// givenKinds returns how many keys of kinds a health check has.
func givenKinds(h *site.HealthCheck) int {
	given := 0
	for _, kind := range site.HealthKinds {
		if kind == "command" && len(h.Command) > 0 || h.Subject(kind) != "" {
			given++
		}
	}
	return given
}

// checkHealthSubject checks the value of a health check, which is of one kind.
func checkHealthSubject(ix *index, h *site.HealthCheck, found func(kind, cure, what string)) {
	report := func(kind, cure, format string, args ...any) { found(kind, cure, fmt.Sprintf(format, args...)) }
	switch name, server := h.NameAndServer(); {
	case h.TCP < 0 || h.TCP > 65535 || h.Kind() == "tcp" && h.TCP == 0:
		report("tcp", "1 to 65535", "port %d is out of range", h.TCP)
	case h.HTTP != "" && !isHTTP(h.HTTP):
		report("http", `such as "http://127.0.0.1:80/healthz"`, "%q is not an HTTP URL", h.HTTP)
	case h.HTTP != "" && !isLookedUp(ix, h.HTTP):
		report("http", "write localhost, an address, or the name of the node that has the role",
			"the health check %q needs a DNS lookup", h.HTTP)
	case len(h.Command) > 0 && h.Command[0] == "":
		report("command", `such as ["pg_isready"]`, "the command is empty")
	case h.Mount != "" && (!path.IsAbs(h.Mount) || path.Clean(h.Mount) != h.Mount || h.Mount == "/"):
		report("mount", `such as "/srv/archive"`, "%q is not the path of a mount", h.Mount)
	case h.Unit != "" && !unit().MatchString(h.Unit):
		report("unit", `such as "postgresql.service"`, "%q is not the name of a unit", h.Unit)
	case h.DNS != "" && (!isDNSName(name) || !isAddress(server)):
		report("dns", `such as "portal.example.org", or with a server "portal.example.org@10.8.67.1"`,
			"%q is not NAME or NAME@ADDRESS", h.DNS)
	case h.NTP != "" && !isAddress(h.NTP):
		report("ntp", `such as "127.0.0.1"`, "%q is not an address", h.NTP)
	case h.MaxOffset != 0 && h.NTP == "":
		report("max_offset", "it belongs to ntp", "max_offset is set without ntp")
	}
}

// isDNSName reports whether a name can be looked up (RFC 1035), which needs no dot at its end.
func isDNSName(name string) bool {
	return len(name) < 254 && !slices.ContainsFunc(strings.Split(strings.ToLower(name), "."),
		func(label string) bool { return !ValidLabel(label) })
}

func isAddress(text string) bool {
	_, err := netip.ParseAddr(text)
	return err == nil
}

func isHTTP(text string) bool {
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return false
	}
	_, err = strconv.ParseUint(u.Port(), 10, 16)
	return u.Port() == "" || err == nil
}

// isLookedUp reports whether the host in a URL can be resolved without a DNS server.
func isLookedUp(ix *index, text string) bool {
	u, err := url.Parse(text)
	if err != nil {
		return false
	}
	name := u.Hostname()
	_, err = netip.ParseAddr(name)
	return err == nil || name == "localhost" ||
		slices.ContainsFunc(ix.Nodes, func(n site.Node) bool { return n.Name == name })
}
