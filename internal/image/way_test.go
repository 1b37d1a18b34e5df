package image

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/url"
	"os"
	"slices"
	"strings"
	"testing"

	"orrery/internal/host"
	"orrery/internal/site"
)

// TestDivert leads apt, pip and all else to proxies on the loopback, behind which are the host's own.
func TestDivert(t *testing.T) {
	a := &access{
		env: map[string]string{
			"http_proxy": "http://p1:3128", "HTTPS_PROXY": "http://p2:3128", "no_proxy": "near.example", "PIP_PROXY": "p3:3128",
			"PIP_INDEX_URL": "http://127.0.0.1:3141/root/pypi", "PIP_EXTRA_INDEX_URL": "https://pypi.org/simple",
		},
		apt: []string{
			option("Acquire::http::Proxy", "http://p4:3142"), option("Acquire::http::Proxy::near.example", "DIRECT"), option("Acquire::Retries", "3"),
		},
	}
	from := []source{{URI: "http://deb.debian.org/debian"}, {URI: "mirror+https://m.example/list"}, {URI: "copy:///srv/mirror"}}
	places := a.places(from, site.Mirror{Hosts: []string{"github.com", "10.1.2.3:8080"}})
	want := []string{
		"deb.debian.org:80", "m.example:443", "127.0.0.1:3141", "pypi.org:443", "files.pythonhosted.org:443", "github.com:80", "github.com:443", "10.1.2.3:8080",
	}
	if !slices.Equal(places, want) {
		t.Errorf("places are %q", places)
	}
	w := a.divert(places)
	defer w.close()
	through := map[string]string{}
	for _, p := range w.ways {
		for _, uri := range []string{"http://deb.debian.org", "https://pypi.org", "http://near.example"} {
			u, _ := url.Parse(uri)
			by, err := p.up(u)
			if err != nil {
				t.Fatal(err)
			}
			if by != nil {
				through[p.address] += by.Host + " "
			} else {
				through[p.address] += "- "
			}
		}
	}
	for address, want := range map[string]string{
		aptProxy: "p4:3142 p4:3142 - ", envProxy: "p1:3128 p2:3128 - ", pipProxy: "p3:3128 p3:3128 p3:3128 ",
	} {
		if through[address] != want {
			t.Errorf("behind %s are %q instead of %q", address, through[address], want)
		}
	}
	if a.env["http_proxy"] != "http://"+envProxy || a.env["no_proxy"] != "" || a.env["PIP_PROXY"] != "http://"+pipProxy {
		t.Errorf("the environment is %v", a.env)
	}
	if got := strings.Join(a.apt, " "); strings.Contains(got, "p4") || !strings.Contains(got, aptProxy) || !strings.Contains(got, "Retries") {
		t.Errorf("apt is told %s", got)
	}
}

const reachScript = `
import os, urllib.request, socket
for url in ("http://TO/", "https://TO/"):
    try:
        urllib.request.urlopen(url, timeout=5)
    except OSError as e:
        print(url, e)
    else:
        raise SystemExit("reached " + url)
s = socket.socket(socket.AF_UNIX)
try:
    s.connect("\0orrery-test-build")
except OSError:
    pass
else:
    raise SystemExit("reached an abstract socket")
`

// TestBuildsReachMirrorsOnly has packages that are fetched, and steps that look for services of the host: on its loopback, at its other addresses and at
// an abstract socket.
func TestBuildsReachMirrorsOnly(t *testing.T) {
	s := realState(t)
	base := realBase(t, s)
	var listeners []net.Listener
	var targets []string
	for _, address := range append([]string{"127.0.0.1"}, addresses(t)...) {
		l, err := net.Listen("tcp4", address+":0")
		if err != nil {
			t.Fatal(err)
		}
		listeners, targets = append(listeners, l), append(targets, l.Addr().String())
	}
	hidden, err := net.Listen("unix", "@orrery-test-build")
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range append(listeners, hidden) {
		defer l.Close()
		go func() {
			for {
				c, err := l.Accept()
				if err != nil {
					return
				}
				t.Errorf("a build step reached %s", l.Addr())
				_, _ = io.WriteString(c, "SSH-2.0-host\r\n")
				c.Close()
			}
		}()
	}
	var log bytes.Buffer
	l := testLayer(t, s, base)
	err = s.BuildLayer(t.Context(), l, site.Mirror{}, func(ctx context.Context, in host.Runner) error {
		if err := s.InstallApt(ctx, in, []string{"python3-venv"}, &log); err != nil {
			return err
		}
		script := "python3 -m venv /opt/orrery/venv && /opt/orrery/venv/bin/pip install six\n"
		for _, to := range targets {
			at, port, _ := strings.Cut(to, ":")
			script += fmt.Sprintf("if timeout 3 bash -c 'exec 3<>/dev/tcp/%s/%s' 2>/dev/null; then exit 3; fi\n", at, port)
			script += "python3 - <<'END'" + strings.ReplaceAll(reachScript, "TO", to) + "END\n" // nor by the proxy, in either manner
		}
		command := sh(script)
		command.Stdout, command.Stderr = &log, &log
		return in.Run(ctx, command)
	}, sayTo(t))
	if err != nil {
		t.Fatalf("%v\n%s", err, log.String())
	}
	if _, err := os.Stat(s.Tree(l.Digest) + "/opt/orrery/venv"); err != nil {
		t.Error(err)
	}
}

// addresses gives the host's own, but for those of its loopback.
func addresses(t *testing.T) []string {
	t.Helper()
	all, err := net.InterfaceAddrs()
	if err != nil {
		t.Fatal(err)
	}
	var own []string
	for _, a := range all {
		if n, ok := a.(*net.IPNet); ok && n.IP.To4() != nil && !n.IP.IsLoopback() {
			own = append(own, n.IP.String())
		}
	}
	return own
}
