package check

import (
	"net/url"
	"strings"

	"orrery/internal/text/pattern"
)

// checkMirror reports settings that are not URLs. An apt mirror may have any scheme that apt
// understands.
func checkMirror(ix *index, found *findings) {
	checkReachable(ix, found)
	m := &ix.Mirror
	for _, part := range []struct{ key, value, schemes string }{
		{"apt", m.Apt, "http https file copy mirror mirror+file mirror+http mirror+https"},
		{"security", m.Security, "http https file copy mirror mirror+file mirror+http mirror+https"},
		{"pypi", m.PyPI, "http https file"}, {"proxy", m.Proxy, "http https socks5 socks5h"},
	} {
		u, err := url.Parse(part.value)
		if part.value != "" && (err != nil || !strings.Contains(" "+part.schemes+" ", " "+u.Scheme+" ") ||
			strings.ContainsAny(part.value, " \t\n\"'")) {
			found.report(at("mirror", part.key), "write http://…", "%s = %q is not a valid URL", part.key, part.value)
			continue
		}
		if part.value != "" && (u.Scheme == "file" || u.Scheme == "copy") &&
			(u.Host != "" || !strings.HasPrefix(u.Path, "/")) {
			found.report(at("mirror", part.key), "write file:///srv/mirror, with three slashes",
				"%s = %q is not a directory of this host", part.key, part.value)
		}
	}
}

// reachable matches the name or address of a machine with an optional port.
var reachable = pattern.New(`^([A-Za-z0-9]([A-Za-z0-9.-]*[A-Za-z0-9])?)(:[1-9][0-9]{0,4})?$`)

// checkReachable checks the hosts that builds may reach in addition to the mirrors.
func checkReachable(ix *index, found *findings) {
	for i, h := range ix.Mirror.Hosts {
		if !reachable().MatchString(h) {
			found.report(at("mirror", "hosts", i), `such as "github.com" or "10.1.2.3:8080"`,
				"hosts has %q, which is not a host name or address", h)
		}
	}
}
