package image

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"testing"

	"orrery/internal/host"
	"orrery/internal/site"
	"orrery/internal/site/distro"
)

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

// TestBuildsReachMirrorsOnly builds a layer with packages and with steps that look for services of
// the host: on its loopback, at its other addresses and at an abstract socket.
//
// Promise (Networks): A hostile package reaches no service of the host while a layer is built. With
// image/access.TestOnlyPlaces.
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
		if err := s.Cache.Install(ctx, in, distro.Debian, []string{"python3-venv"}, &log); err != nil {
			return err
		}
		script := "python3 -m venv /opt/orrery/venv && /opt/orrery/venv/bin/pip install six\n"
		for _, to := range targets {
			at, port, _ := strings.Cut(to, ":")
			script += fmt.Sprintf("if timeout 3 bash -c 'exec 3<>/dev/tcp/%s/%s' 2>/dev/null; then exit 3; fi\n", at, port)
			// nor through the proxy, in either mode
			script += "python3 - <<'END'" + strings.ReplaceAll(reachScript, "TO", to) + "END\n"
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

// addresses returns the host's addresses, except those of its loopback.
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
