package check

import (
	"net/netip"
	"net/url"
	"slices"

	"orrery/internal/site"
)

func checkRoleHealth(ix *index, found *findings, r *site.Role) {
	for k, h := range r.Health {
		key := at("role", r.Name, "health", k)
		switch kinds := countTrue(h.TCP != 0, h.HTTP != "", len(h.Command) > 0); {
		case kinds != 1:
			found.report(key, "set one of them", "the health check has %d of http, tcp and command", kinds)
		case h.TCP < 0 || h.TCP > 65535:
			found.report(append(key, "tcp"), "1 to 65535", "port %d is out of range", h.TCP)
		case h.HTTP != "" && !isHTTP(h.HTTP):
			found.report(append(key, "http"), `such as "http://127.0.0.1:80/healthz"`, "%q is not an HTTP URL", h.HTTP)
		case h.HTTP != "" && !isLookedUp(ix, h.HTTP):
			found.report(append(key, "http"), "write localhost, an address, or the name of the node that has the role",
				"the health check %q needs a DNS lookup", h.HTTP)
		case len(h.Command) > 0 && h.Command[0] == "":
			found.report(append(key, "command"), `such as ["pg_isready"]`, "the command is empty")
		}
		if h.Timeout > h.Within {
			found.report(append(key, "timeout"), "within must allow more than one try",
				"timeout %s is longer than within %s", h.Timeout, h.Within)
		}
	}
}

func isHTTP(text string) bool {
	u, err := url.Parse(text)
	return err == nil && (u.Scheme == "http" || u.Scheme == "https") && u.Host != ""
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
