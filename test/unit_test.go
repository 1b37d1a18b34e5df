package test

import (
	"errors"
	"testing"
)

// TestRenderedUnit: a template may generate the unit of a service. The service starts with the
// node, and at each later boot.
func TestRenderedUnit(t *testing.T) {
	t.Parallel()
	s := newSite(t, "it-unit", `
[image.debian]
suite = "bookworm"
[node.one]
id = 10
roles = ["beat"]
`, files{
		"roles/beat/role.toml": "services = [\"beat.service\"]\n[[file]]\npath = \"/etc/systemd/system/beat.service\"\ntemplate = \"unit\"\n[[health]]\ncommand = [\"systemctl\", \"is-active\", \"beat.service\"]\n",
		"roles/beat/unit":      "[Service]\nExecStart=/bin/sleep infinity\nEnvironment=NODE={{ .Node.Name }}\n[Install]\nWantedBy=multi-user.target\n",
	})
	s.run("up").want(0, `one .*healthy`)
	if got := s.on("one", "systemctl", "is-enabled", "beat.service"); got != "enabled" {
		t.Errorf("the unit is %s", got)
	}
	s.do("stop", "one")
	s.do("start", "one")
	s.eventually(func() error { // at boot, without a run that configures it
		if got := s.run("shell", "one", "--", "systemctl", "is-active", "beat.service"); got.status != 0 {
			return errors.New(got.out)
		}
		return nil
	})
	s.settled()
}
