// Package access decides how a build reaches its packages.
//
// That is: from which archives, through which proxies and with which certificates. A build can
// reach nothing else. The archives are those of the image's distribution (distro.Sources). A mirror
// that is a directory of this host is mounted where the build sees it (localmirror.go). An Access has
// the settings of this host's apt and pip for proxies and indexes. Redirect changes it to that of a
// build, which runs in a network namespace with only a loopback. There, a BuildProxy consists of proxies
// on this loopback that lead to the sources of packages. Each uses the host's proxy for a place, and
// all of them refuse other places (buildproxy.go).
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

// Access describes how this host reaches its packages: the settings of apt and pip for proxies,
// certificates and indexes, and what the site declares instead. It is only used for building.
// Nothing of it gets into a layer.
type Access struct {
	Apt   []string          // options of apt, each `Key "value";`
	env   map[string]string // environment for all other programs
	Roots []byte            // trusted CA certificates, PEM
	Netrc []byte            // credentials of package archives
}

// caBundles are the files in which distributions keep the certificates of all trusted authorities.
var caBundles = []string{
	"/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/certs/ca-bundle.crt", "/etc/ssl/ca-bundle.pem",
	"/etc/ssl/cert.pem",
}

// FromHost returns how this host reaches packages, with the settings of a site's mirror, if any, in
// their place.
func FromHost(m site.Mirror) *Access {
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
	for _, file := range append([]string{os.Getenv("SSL_CERT_FILE")}, caBundles...) {
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

// aptKeys are the settings of the host's apt that say how to reach archives. All others are only for
// the host.
var aptKeys = []string{
	"Acquire::http::", "Acquire::https::", "Acquire::ftp::", "Acquire::Retries", "Acquire::Check-Valid-Until",
	"Acquire::Check-Date",
	"Acquire::Max-ValidTime", "Acquire::ForceIPv4", "Acquire::ForceIPv6", "Acquire::AllowInsecureRepositories",
}

// anyArchive returns an archive that the host uses.
func anyArchive() string {
	if own, err := distro.HostSources("/"); err == nil && len(own) > 0 {
		return own[0].URI
	}
	return "http://localhost/"
}

// addApt adds the settings of the host's apt, if it has one.
func (a *Access) addApt() {
	dump, err := host.Program(context.Background(), "apt-config", "dump").Output()
	if err != nil {
		return
	}
	for line := range strings.Lines(string(dump)) {
		key, value, _ := strings.Cut(strings.TrimSuffix(strings.TrimSpace(line), ";"), " ")
		value = strings.Trim(value, `"`)
		if value == "" || !slices.ContainsFunc(aptKeys, func(p string) bool { return strings.HasPrefix(key, p) }) {
			continue
		}
		switch {
		case strings.HasSuffix(key, "Proxy-Auto-Detect") || strings.HasSuffix(key, "ProxyAutoDetect"):
			// This is a program of the host. Run it here, because the scratch container does not
			// have it.
			out, err := host.Program(context.Background(), value, anyArchive()).Output()
			if proxy := strings.TrimSpace(string(out)); err == nil && proxy != "" && proxy != "DIRECT" {
				a.Apt = append(a.Apt, distro.Option("Acquire::http::Proxy", proxy))
			}
		case strings.HasSuffix(key, "::CAInfo"):
			if text, err := os.ReadFile(value); err == nil {
				a.Roots = slices.Concat(a.Roots, text)
			}
		case strings.HasPrefix(value, "/"):
			// Another file of the host, such as a client certificate: do not copy it.
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

// WriteConfig writes the certificates and credentials to a directory, which apt sees at the path seen. It
// returns apt's settings for this access.
func (a *Access) WriteConfig(dir, seen string) ([]string, error) {
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

// pipKeys are the settings of pip that say how to reach packages.
var pipKeys = []string{"index-url", "extra-index-url", "trusted-host", "proxy", "retries", "timeout", "default-timeout"}

// addPip adds the settings of the host's pip from its files and then from the environment.
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

// Proxies returns the variables that name proxies.
func (a *Access) Proxies() []string {
	return slices.DeleteFunc(a.Environ(), func(v string) bool {
		name, _, _ := strings.Cut(v, "=")
		return !ProxyVariables[name]
	})
}
