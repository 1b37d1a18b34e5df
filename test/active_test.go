package test

import (
	"strings"
	"testing"
)

const activeSite = `
network.lan = { subnet = "10.99.66.0/24", gateway = "10.99.66.1" }
network.far = { subnet = "10.99.69.0/24", gateway = "10.99.69.1" }
image.debian.suite = "bookworm"
role."orrery/chrony".servers = []
role."orrery/dnsmasq".records = ["printer.lan,10.99.66.77"]
node.infra = { id = 11, net.lan = "auto" }
node.client = { id = 21, net.lan = "auto", roles = ["asks"] }
node.stranger = { id = 22, net.far = "auto" }
service.names = { active = "dns", network = "lan", nodes = ["infra"] }
service.time = { active = "ntp", network = "lan", nodes = ["infra"] }
`

// askActive asks for a name (dns NAME) or the time (ntp) at an address, and prints the address of the name, or "time".
const askActive = `
import socket, struct, sys
at, kind, name = sys.argv[1:]
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.settimeout(3)
s.connect((at, 53 if kind == "dns" else 123))
try:
    if kind == "dns":
        words = b"".join(bytes([len(w)]) + w.encode() for w in name.split("."))
        s.send(struct.pack(">6H", 7, 0x100, 1, 0, 0, 0) + words + b"\0\0\1\0\1")
        got = s.recv(512)
        if struct.unpack(">H", got[6:8])[0]:
            print(".".join(map(str, got[-4:])))
    else:
        s.send(b"\x23" + bytes(47))
        if s.recv(48)[0] & 7 == 4:
            print("time")
except OSError:
    pass
`

// TestActiveServices: nodes ask for names and the time at their gateway's address, where the node of the host
// answers. Nodes of other networks get no answer. Only the life of the host and of its node counts.
func TestActiveServices(t *testing.T) {
	t.Parallel()
	s := newSite(t, "it-active", activeSite, files{
		"roles/asks/role.toml":        "[[file]]\npath = \"/etc/resolv.conf\"\ntemplate = \"resolv.conf.tmpl\"\n",
		"roles/asks/resolv.conf.tmpl": "nameserver {{.Networks.lan.Gateway}}\n"})
	s.do("up")
	ask := func(node string, words ...string) string {
		t.Helper()
		out := s.run(append([]string{"shell", node, "--", "python3", "-c", askActive}, words...)...).out
		return strings.TrimSpace(out)
	}
	answers := func() {
		t.Helper()
		for name, want := range map[string]string{
			"client": "10.99.66.21", "infra.it-active": "10.99.66.11", "stranger.far.it-active": "10.99.69.22",
		} {
			s.eventually(func() error {
				got := ask("client", "10.99.66.1", "dns", name)
				return ok(got == want, "%s is at %q", name, got)
			})
		}
		s.eventually(func() error { return ok(ask("client", "10.99.66.1", "ntp", "") == "time", "no time") })
	}
	answers()
	s.sh("client", "getent ahostsv4 printer.lan | grep -q '^10.99.66.77 '")
	s.run("service", "ls").want(0, `names +10\.99\.66\.1 +infra .* dns +lan`, `time +10\.99\.66\.1 +infra .* ntp +lan`)
	s.settled()
	for _, at := range []string{"10.99.66.1", "10.99.69.1", "10.99.66.11"} {
		for _, kind := range []string{"dns", "ntp"} {
			if got := ask("stranger", at, kind, "client"); got != "" {
				t.Errorf("a node of another network gets %q from %s of %s", got, kind, at)
			}
		}
	}

	s.do("stop", "infra")
	if got := ask("client", "10.99.66.1", "dns", "client"); got != "" {
		t.Errorf("a stopped node answers %q", got)
	}
	s.run("service", "ls").want(11, `names .* infra \(not running\)`)
	s.do("start", "infra")
	answers()
	s.settled()

	s.edit("site.toml", `service.time = { active = "ntp", network = "lan", nodes = ["infra"] }`, "")
	s.do("up")
	if got := ask("client", "10.99.66.1", "ntp", ""); got != "" {
		t.Error("a service that is gone answers")
	}
	s.do("down")
	if out, _ := sh("nft list tables"); strings.Contains(out, "it-active") {
		t.Errorf("down leaves\n%s", out)
	}
}
