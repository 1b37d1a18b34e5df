package test

import (
	"encoding/json"
	"fmt"
	"net"
	"os/exec"
	"strings"
	"testing"
	"time"
)

const publishingSite = `
[network.lan]
subnet  = "10.99.64.0/24"
gateway = "10.99.64.1"
[image.debian]
suite = "bookworm"
[node.web]
id      = 11
roles   = ["greeter"]
publish = ["18080:7000"]
[release.700]
notes = "first"
[release.701]
roles = { greeter = "greeter2" }
`

// TestPublished: a colleague's machine reaches a node at a port of the host, from the first up to
// down, through a switch of releases and a change of the rules by another program.
func TestPublished(t *testing.T) {
	t.Parallel()
	s := newSite(t, "it-publish", publishingSite, released())
	outside(t, "it-publish", "10.99.65")
	asks := func(port int) string {
		out, _ := exec.Command("ip", "netns", "exec", "it-publish", "python3", "-c", fmt.Sprintf(`
import socket
s = socket.create_connection(("10.99.65.1", %d), timeout=5)
print(s.recv(100).decode(), end="")
`, port)).Output()
		return strings.TrimSpace(string(out))
	}
	gets := func(port int, want string) {
		t.Helper()
		if got := asks(port); got != want {
			t.Errorf("port %d says %q, not %q", port, got, want)
		}
	}

	// A program that listens keeps its port.
	l, err := net.Listen("tcp", ":18080")
	if err != nil {
		t.Skipf("not run: %v", err)
	}
	s.run("up").want(4, "a program of the host listens at", "ss -tlnp 'sport = :18080'")
	l.Close()

	s.do("up")
	s.settled()
	gets(18080, "one")
	if shown := s.do("status"); !strings.Contains(shown, ":18080/ leads to its port 7000") {
		t.Errorf("status shows\n%s", shown)
	}
	var reply struct {
		Result []struct {
			Published []struct{ Ports, Node, URL string }
		}
	}
	if err := json.Unmarshal([]byte(s.do("status", "--json")), &reply); err != nil || len(reply.Result) != 1 ||
		len(reply.Result[0].Published) != 1 || reply.Result[0].Published[0].Ports != "tcp/18080" {
		t.Errorf("status --json: %+v, %v", reply, err)
	}
	if c, err := net.DialTimeout("tcp", "10.99.65.1:18080", 5*time.Second); err != nil { // of the host itself
		t.Error(err)
	} else {
		c.Close()
	}
	s.sh("web", "! python3 -c 'import socket; socket.create_connection((\"10.99.65.1\", 18080), timeout=1)' 2>/dev/null")

	if out, err := sh("nft flush chain inet orrery-it-publish publish"); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	gets(18080, "")
	s.wantPlan("network lan")
	s.do("up")
	s.settled()
	gets(18080, "one")

	s.edit("site.toml", `["18080:7000"]`, `["18080:7000", "18081:7000"]`)
	s.do("stage", "all", "--release", "701")
	gets(18081, "") // not while it is in quarantine
	s.do("switch", "all", "--release", "701")
	gets(18080, "two")
	gets(18081, "two")
	s.do("rollback")
	gets(18080, "one")
	s.do("down")
	gets(18080, "")
	if out, _ := sh("nft list tables"); strings.Contains(out, "it-publish") {
		t.Errorf("down leaves\n%s", out)
	}
}
