package access

import (
	"fmt"
	"net/url"
	"os"
	"slices"
	"strings"

	"orrery/internal/site/distro"

	"golang.org/x/net/http/httpproxy"

	"orrery/internal/host"
	"orrery/internal/problem"
	"orrery/internal/site"
)

// A BuildProxy is the access from a network namespace without links to the places of packages. It consists
// of proxies on the namespace's loopback. Each connection uses the host's proxy for the place, and
// other places are refused.
type BuildProxy struct {
	relay *egressProxy
	ways  []proxyListener
}

// A proxyListener is the address of a proxy in the namespace, and how the host reaches what is behind it.
type proxyListener struct {
	address string
	up      upstream
}

// Addresses of the proxies, by whose settings on the host they follow.
const (
	aptProxy = "127.0.0.1:3128"
	envProxy = "127.0.0.1:3129"
	pipProxy = "127.0.0.1:3130"
)

// Redirect changes the host's access to that of a build, which can only use proxies, and returns the
// BuildProxy for them.
func (a *Access) Redirect(places []string) *BuildProxy {
	w := &BuildProxy{relay: newEgressProxy(places)}
	byEnv := envUpstream(a.env)
	aptProxies, options := aptProxies(a.Apt)
	w.ways = append(w.ways,
		proxyListener{envProxy, byEnv},
		proxyListener{aptProxy, func(u *url.URL) (*url.URL, error) { return aptUpstream(aptProxies, u, byEnv) }})
	for name := range ProxyVariables {
		delete(a.env, name)
	}
	for _, name := range []string{"http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY"} {
		a.env[name] = "http://" + envProxy
	}
	a.Apt = append(options, distro.Option("Acquire::http::Proxy", "http://"+aptProxy),
		distro.Option("Acquire::https::Proxy", "http://"+aptProxy))
	if own := a.env["PIP_PROXY"]; own != "" {
		w.ways = append(w.ways, proxyListener{pipProxy, func(*url.URL) (*url.URL, error) { return proxyURL(own) }})
		a.env["PIP_PROXY"] = "http://" + pipProxy
	}
	return w
}

// Open starts the proxies in a network namespace.
func (w *BuildProxy) Open(space *os.File) error {
	for _, p := range w.ways {
		if err := w.relay.Listen(space, p.address, p.up); err != nil {
			return err
		}
	}
	return nil
}

// Close stops the proxies.
func (w *BuildProxy) Close() {
	if w != nil {
		w.relay.Close()
	}
}

// Explain adds to an error the places that the build tried to reach and was refused, if there are
// any.
func (w *BuildProxy) Explain(err error) error {
	refused := w.relay.Denied()
	if err == nil || len(refused) == 0 {
		return err
	}
	slices.Sort(refused)
	refused = slices.Compact(refused)
	return problem.New(problem.Failed, "builds can reach package archives only, but this one tried to reach %s",
		strings.Join(refused, ", ")).Because(err).
		Try("to allow it, set in site.toml: [mirror] hosts = [%q]", refused[0])
}

// ProxyVariables are the environment variables that name proxies.
var ProxyVariables = map[string]bool{
	"http_proxy": true, "https_proxy": true, "ftp_proxy": true, "all_proxy": true, "no_proxy": true,
	"HTTP_PROXY": true, "HTTPS_PROXY": true, "FTP_PROXY": true, "ALL_PROXY": true, "NO_PROXY": true,
}

func envUpstream(env map[string]string) upstream {
	first := func(names ...string) string {
		i := slices.IndexFunc(names, func(name string) bool { return env[name] != "" })
		if i < 0 {
			return ""
		}
		return env[names[i]]
	}
	c := httpproxy.Config{
		HTTPProxy:  first("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"),
		HTTPSProxy: first("https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"),
		NoProxy:    first("no_proxy", "NO_PROXY"),
	}
	return c.ProxyFunc()
}

// aptProxies separates the proxies from apt's other options.
func aptProxies(options []string) (proxies map[string]string, others []string) {
	proxies = map[string]string{}
	for _, o := range options {
		key, value, _ := strings.Cut(strings.TrimSuffix(o, ";"), " ")
		if method, host, ok := strings.Cut(key, "::Proxy"); ok && (host == "" || strings.HasPrefix(host, "::")) {
			proxies[strings.ToLower(strings.TrimPrefix(method, "Acquire::")+host)] = strings.Trim(value, `"`)
		} else {
			others = append(others, o)
		}
	}
	return proxies, others
}

// aptUpstream returns the proxy for a place in apt's order (apt-transport-http(1)): the one for the
// host, the one for all hosts, the one of the environment.
func aptUpstream(proxies map[string]string, u *url.URL, byEnv upstream) (*url.URL, error) {
	for _, key := range []string{u.Scheme + "::" + strings.ToLower(u.Hostname()), u.Scheme,
		"http::" + strings.ToLower(u.Hostname()), "http"} {
		if text, ok := proxies[key]; ok {
			return proxyURL(text)
		}
	}
	return byEnv(u)
}

func proxyURL(text string) (*url.URL, error) {
	if text == "" || text == "DIRECT" || text == "false" {
		return nil, nil
	}
	if !strings.Contains(text, "://") {
		text = "http://" + text
	}
	u, err := url.Parse(text)
	if err != nil {
		return nil, fmt.Errorf("proxy %q: %w", text, err)
	}
	return u, nil
}

// HostPorts returns the hosts and ports of packages: archives, indexes of Python packages, and what
// the site declares in addition.
func (a *Access) HostPorts(from []distro.Source, m site.Mirror) []string {
	var all []string
	add := func(uri string) {
		if u, err := url.Parse(uri); err == nil && hostPort(u) != "" {
			all = append(all, hostPort(u))
		}
	}
	for _, s := range from {
		add(strings.TrimPrefix(s.URI, "mirror+"))
	}
	indexes := strings.Fields(a.env["PIP_INDEX_URL"] + " " + a.env["PIP_EXTRA_INDEX_URL"])
	if a.env["PIP_INDEX_URL"] == "" {
		indexes = append(indexes, "https://pypi.org/simple")
	}
	for _, index := range indexes {
		add(index)
		if u, err := url.Parse(index); err == nil && u.Hostname() == "pypi.org" {
			add("https://files.pythonhosted.org/")
		}
	}
	for _, h := range m.Hosts {
		if strings.Contains(h, ":") {
			add("http://" + h)
		} else {
			add("http://" + h)
			add("https://" + h)
		}
	}
	return all
}

// RunInNetNS runs a command in a new network namespace in which the proxies listen.
func (w *BuildProxy) RunInNetNS(args []string, run func(args []string) error) error {
	space, err := host.NewNetNS()
	if err != nil {
		return err
	}
	defer space.Close()
	if err := w.Open(space); err != nil {
		return err
	}
	defer w.Close()
	in := fmt.Sprintf("/proc/%d/fd/%d", os.Getpid(), space.Fd())
	return run(append([]string{"nsenter", "--net=" + in, "--"}, args...))
}
