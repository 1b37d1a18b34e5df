package test

import (
	"fmt"
	"testing"
	"time"
)

// TestChain: what roles of several nodes have in common at their beginning is built once, and a
// node has the parts of all of its roles. A service that is added to a role whose layer already
// exists runs on new nodes, too.
func TestChain(t *testing.T) {
	t.Parallel()
	unit := func(name string) string {
		return "[[file]]\npath = \"/etc/systemd/system/" + name +
			".service\"\ncontent = \"\"\"\n[Service]\nExecStart=/bin/sleep infinity\n[Install]\nWantedBy=multi-user.target\n\"\"\"\n"
	}
	s := newSite(t, "it-chain", `
[image.debian]
suite = "bookworm"
[node.a]
id = 11
roles = ["portal"]
[node.b]
id = 12
roles = ["db"]
`, files{
		// not yet in the store
		"roles/cam/role.toml": "apt = [\"tree\"]\n[[step]]\nname = \"once\"\nwhen = \"build\"\nscript = \"date +%N >/srv/once # " + fmt.Sprint(time.Now().UnixNano()) + "\"\n",
		"roles/portal/role.toml": "services = [\"portal.service\"]\n[needs]\nroles = [\"cam\"]\n" + unit("portal") +
			unit("mail"),
		"roles/db/role.toml": "services = [\"db.service\"]\n[needs]\nroles = [\"cam\"]\n[[step]]\nname = \"after\"\nwhen = \"build\"\nscript = \"cp /srv/once /srv/seen; tree --version\"\n" + unit("db"),
	})
	s.run("plan").want(10, `build +3 layers`)
	s.run("plan", "-v").want(10, `build +.*\+ cam:`, `build +.*\+ cam, portal`, `build +.*\+ cam, db`)
	s.do("up")
	if a, b, seen := s.on("a", "cat", "/srv/once"), s.on("b", "cat", "/srv/once"),
		s.on("b", "cat", "/srv/seen"); a != b || b != seen {
		t.Errorf("cam was built more than once: %s, %s and %s", a, b, seen)
	}
	for node, service := range map[string]string{"a": "portal", "b": "db"} {
		if got := s.on(node, "systemctl", "is-active", service); got != "active" {
			t.Errorf("%s of %s is %s", service, node, got)
		}
	}
	s.settled()
	s.edit("roles/portal/role.toml", `["portal.service"]`, `["portal.service", "mail.service"]`)
	s.edit("site.toml", "[node.b]", "[node.c]\nid = 13\nroles = [\"portal\"]\n[node.b]")
	for _, step := range s.plan() {
		if step.Kind == "build" {
			t.Errorf("a service makes another layer: %+v", step)
		}
	}
	s.do("up")
	for _, node := range []string{"a", "c"} {
		if got := s.on(node, "systemctl", "is-active", "mail", "portal"); got != "active\nactive" {
			t.Errorf("on %s, mail and portal are %s", node, got)
		}
		if got := s.on(node, "systemctl", "is-enabled", "mail"); got != "enabled" {
			t.Errorf("on %s, mail is %s", node, got)
		}
	}
	s.settled()
}
