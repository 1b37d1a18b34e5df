package test

import (
	"strings"
	"testing"
)

// clusterRoles are a scheduler's configuration with its own daemon, a role above it with a daemon
// that reads the same file, and an unrelated role. The daemon of the base role needs what the boot
// step of the role above prepares.
var clusterRoles = files{
	"roles/base/role.toml": `services = ["agent.service"]
[[file]]
path = "/etc/cluster.conf"
template = "cluster.conf"
[[file]]
path = "/etc/motd.conf"
template = "motd.conf"
restarts = ["ctld.service"]
[[file]]
path = "/usr/local/bin/reader"
mode = "0755"
content = """
#!/bin/sh -eu
test -e /var/lib/prepared
cp /etc/cluster.conf /run/$1.read
. /etc/cluster.conf
exec sleep infinity
"""
[[file]]
path = "/etc/systemd/system/agent.service"
content = """
[Service]
ExecStart=/usr/local/bin/reader agent
[Install]
WantedBy=multi-user.target
"""
[[step]]
name = "count"
when = "started"
script = "systemctl is-active agent.service ctld.service other.service; echo once >>/var/lib/counted"
`,
	"roles/base/cluster.conf": "port=1\n",
	"roles/base/motd.conf":    "hello\n",
	"roles/ctld/role.toml": `services = ["ctld.service"]
needs.roles = ["base"]
[[file]]
path = "/etc/systemd/system/ctld.service"
content = """
[Service]
ExecStart=/usr/local/bin/reader ctld
[Install]
WantedBy=multi-user.target
"""
[[step]]
name = "prepare"
when = "boot"
script = "touch /var/lib/prepared"
`,
	"roles/other/role.toml": `services = ["other.service"]
[[file]]
path = "/etc/systemd/system/other.service"
content = """
[Service]
ExecStart=/bin/sleep infinity
[Install]
WantedBy=multi-user.target
"""
`,
}

// TestOrderOfRoles: the services of a base role start after the boot steps of the role above it,
// and steps that need services run after those of all roles. When a file of the base role changes,
// only the daemons of the base role and of the roles above read it again.
func TestOrderOfRoles(t *testing.T) {
	t.Parallel()
	s := newSite(t, "it-order", `
[image.debian]
suite = "bookworm"
[node.one]
id = 10
roles = ["ctld", "other"]
`, clusterRoles)
	daemons := []string{"agent.service", "ctld.service", "other.service"}
	pids := func() []string {
		return strings.Split(s.on("one", append([]string{"systemctl", "show", "--property=MainPID", "--value"},
			daemons...)...), "\n\n")
	}
	restarted := func(before []string) (all string) {
		for i, after := range pids() {
			if after != before[i] {
				all += daemons[i] + " "
			}
		}
		return all
	}
	wantRead := func(text string) {
		t.Helper()
		if got := s.sh("one", "cat /run/agent.read /run/ctld.read"); got != text+"\n"+text {
			t.Errorf("the daemons have read\n%s", got)
		}
	}
	s.do("up")
	wantRead("port=1")
	before := pids()
	s.write("roles/base/cluster.conf", "port=2\n")
	s.wantPlan("configure one")
	s.do("up")
	wantRead("port=2")
	if got := restarted(before); got != "agent.service ctld.service " {
		t.Errorf("a changed file of the base role has restarted %q", got)
	}
	before = pids()
	s.write("roles/base/motd.conf", "good day\n")
	s.do("up")
	if got := restarted(before); got != "ctld.service " {
		t.Errorf("a changed file that says what restarts has restarted %q", got)
	}
	if got := s.on("one", "cat", "/var/lib/counted"); got != "once\nonce" {
		t.Errorf("the step for services that have started was done %q", got)
	}
	s.settled()

	// A daemon that ends as soon as it has started fails the run, with its output. The next run
	// starts again.
	s.write("roles/base/cluster.conf", "echo no such port; exit 3\n")
	s.run("up").want(8, "one: configure: FAILED", `service agent.service exits immediately after its start`,
		"no such port")
	s.run("status").want(11)
	s.write("roles/base/cluster.conf", "port=3\n")
	s.do("up")
	wantRead("port=3")
	s.settled()
}
