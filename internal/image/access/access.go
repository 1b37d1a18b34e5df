// Package access decides how a build reaches its packages: from which archives, through which
// proxies, with which certificates, and nothing else.
//
// The archives themselves are those of the image's distribution (distro.Sources); a mirror that is
// a directory of this host is brought to where the build sees it (nearby.go). Access is what apt
// and pip of this host are told about proxies and indexes. Divert turns it into that of a build,
// which runs in a network namespace with a loopback alone: a Way there are proxies on this loopback
// that lead to the Places of packages, each through the proxy that the host has for it, and refuse
// all others (way.go).
package access

import (
	"bytes"
	"context"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"orrery/internal/site/distro"

	"gopkg.in/ini.v1"

	"orrery/internal/host"
	"orrery/internal/site"
)

// Access is how this host reaches its packages: what apt and pip here are told about proxies,
// certificates and indexes, and what the site declares instead. It is for building only; none of it
// gets into a layer.
type Access struct {
	Apt   []string          // options of apt, one `Key "value";` each
	env   map[string]string // for whatever else fetches something
	Roots []byte            // certificates of the authorities to trust, PEM
	Netrc []byte            // credentials of package archives
}

// bundles are where distributions keep the certificates of all authorities that they trust, in one file.
var bundles = []string{
	"/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/certs/ca-bundle.crt", "/etc/ssl/ca-bundle.pem",
	"/etc/ssl/cert.pem",
}

// OfHost returns how this host reaches packages, or the mirror that a site names in its place.
func OfHost(m site.Mirror) *Access {
	a := &Access{env: map[string]string{}}
	for _, name := range []string{"http_proxy", "https_proxy", "ftp_proxy", "all_proxy", "no_proxy"} {
		for _, name := range []string{name, strings.ToUpper(name)} {
			if value := os.Getenv(name); value != "" {
				a.env[name] = value
			}
		}
	}
	a.addApt()
	a.addPip()
	for _, file := range append([]string{os.Getenv("SSL_CERT_FILE")}, bundles...) {
		if text, err := os.ReadFile(file); file != "" && err == nil {
			a.Roots = text
			break
		}
	}
	if len(m.CA) > 0 {
		a.Roots = slices.Concat(bytes.TrimRight(a.Roots, "\n"), []byte("\n"), m.CA)
	}
	if m.Proxy != "" {
		for _, name := range []string{"http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY"} {
			a.env[name] = m.Proxy
		}
		a.Apt = append(a.Apt, distro.Option("Acquire::http::Proxy", m.Proxy), distro.Option("Acquire::https::Proxy", m.Proxy))
	}
	if m.PyPI != "" {
		a.env["PIP_INDEX_URL"] = m.PyPI
		delete(a.env, "PIP_EXTRA_INDEX_URL")
	}
	return a
}

// taken are apt's settings of the host that say how to reach archives, not how the host itself is to be.
var taken = []string{
	"Acquire::http::", "Acquire::https::", "Acquire::ftp::", "Acquire::Retries", "Acquire::Check-Valid-Until",
	"Acquire::Check-Date",
	"Acquire::Max-ValidTime", "Acquire::ForceIPv4", "Acquire::ForceIPv6", "Acquire::AllowInsecureRepositories",
}

// someArchive is one of those that the host uses.
func someArchive() string {
	if own, err := distro.HostSources("/"); err == nil && len(own) > 0 {
		return own[0].URI
	}
	return "http://localhost/"
}

// addApt takes over the settings of the host's apt, if it has one.
func (a *Access) addApt() {
	dump, err := host.Program(context.Background(), "apt-config", "dump").Output()
	if err != nil {
		return
	}
	for line := range strings.Lines(string(dump)) {
		key, value, _ := strings.Cut(strings.TrimSuffix(strings.TrimSpace(line), ";"), " ")
		value = strings.Trim(value, `"`)
		if value == "" || !slices.ContainsFunc(taken, func(p string) bool { return strings.HasPrefix(key, p) }) {
			continue
		}
		switch {
		case strings.HasSuffix(key, "Proxy-Auto-Detect") || strings.HasSuffix(key, "ProxyAutoDetect"):
			// A program of the host; what it says for an archive is asked here, since the scratch container
			// has no such program.
			out, err := host.Program(context.Background(), value, someArchive()).Output()
			if proxy := strings.TrimSpace(string(out)); err == nil && proxy != "" && proxy != "DIRECT" {
				a.Apt = append(a.Apt, distro.Option("Acquire::http::Proxy", proxy))
			}
		case strings.HasSuffix(key, "::CAInfo"):
			if text, err := os.ReadFile(value); err == nil {
				a.Roots = slices.Concat(a.Roots, text)
			}
		case strings.HasPrefix(value, "/"):
			// Another file of the host (a client's certificate): not carried over.
		default:
			a.Apt = append(a.Apt, distro.Option(key, value))
		}
	}
	files, _ := filepath.Glob("/etc/apt/auth.conf.d/*.conf")
	for _, file := range append([]string{"/etc/apt/auth.conf"}, files...) {
		if text, err := os.ReadFile(file); err == nil {
			a.Netrc = slices.Concat(a.Netrc, text, []byte("\n"))
		}
	}
}

// Lay writes the certificates and credentials into a directory, which apt sees at a path, and gives
// apt's settings for all of the access.
func (a *Access) Lay(dir, seen string) ([]string, error) {
	settings := slices.Clone(a.Apt)
	for _, f := range []struct {
		key, name string
		text      []byte
	}{{"Acquire::https::CAInfo", "ca.pem", a.Roots}, {"Dir::Etc::netrc", "auth.conf", a.Netrc}} {
		if len(f.text) == 0 {
			continue
		}
		if err := os.WriteFile(filepath.Join(dir, f.name), f.text, 0o644); err != nil {
			return nil, err
		}
		settings = append(settings, distro.Option(f.key, filepath.Join(seen, f.name)))
	}
	return settings, nil
}

// pipKeys are pip's settings that say how to reach packages.
var pipKeys = []string{"index-url", "extra-index-url", "trusted-host", "proxy", "retries", "timeout", "default-timeout"}

// addPip takes over the settings of the host's pip, from its files and then from the environment.
func (a *Access) addPip() {
	home, _ := os.UserHomeDir()
	for _, file := range []string{
		"/etc/pip.conf", "/etc/xdg/pip/pip.conf", filepath.Join(home, ".pip/pip.conf"),
		filepath.Join(home, ".config/pip/pip.conf"),
		os.Getenv("PIP_CONFIG_FILE"),
	} {
		conf, err := ini.LoadSources(ini.LoadOptions{AllowPythonMultilineValues: true, IgnoreInlineComment: true}, file)
		if file == "" || err != nil {
			continue
		}
		for _, section := range []string{"global", "install"} {
			for _, key := range pipKeys {
				if value := conf.Section(section).Key(key).String(); value != "" {
					a.env[pipVariable(key)] = strings.Join(strings.Fields(value), " ")
				}
			}
		}
	}
	for _, key := range pipKeys {
		if value := os.Getenv(pipVariable(key)); value != "" {
			a.env[pipVariable(key)] = value
		}
	}
}

func pipVariable(key string) string {
	return "PIP_" + strings.ToUpper(strings.ReplaceAll(key, "-", "_"))
}

// Environ returns the variables as KEY=value, sorted.
func (a *Access) Environ() []string {
	var all []string
	for _, key := range slices.Sorted(maps.Keys(a.env)) {
		all = append(all, key+"="+a.env[key])
	}
	return all
}

// Proxies returns those of the variables that say how to get out.
func (a *Access) Proxies() []string {
	return slices.DeleteFunc(a.Environ(), func(v string) bool {
		name, _, _ := strings.Cut(v, "=")
		return !ProxyVariables[name]
	})
}
