package test

import (
	"net/http"
	"os"
	"testing"
	"time"

	"orrery/test/need"
)

// ubuntuArchive is the source of the packages of TestUbuntu. They are signed with
// testdata/ubuntu-archive.asc, the archive's key of 2018, from Debian 13's package ubuntu-keyring.
const ubuntuArchive = "http://archive.ubuntu.com/ubuntu"

// served skips a test of a distribution whose archive does not answer here.
func served(t *testing.T, release string) {
	t.Helper()
	need.Integration(t)
	client := &http.Client{Timeout: 5 * time.Second}
	answer, err := client.Head(release)
	if err != nil {
		t.Skipf("the distribution is not served here: %v", err)
	}
	answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		t.Skipf("the distribution is not served here: %s: %s", release, answer.Status)
	}
}

// TestUbuntu: a node with another distribution than this host works from what package distro knows
// about it: its base, packages of a role, a service.
func TestUbuntu(t *testing.T) {
	served(t, ubuntuArchive+"/dists/noble/InRelease")
	t.Parallel()
	key, err := os.ReadFile("testdata/ubuntu-archive.asc")
	if err != nil {
		t.Fatal(err)
	}
	s := newSite(t, "it-ubuntu", `
[network.lan]
subnet = "10.99.231.0/24"
gateway = "10.99.231.1"
[mirror]
apt = "`+ubuntuArchive+`"
security = "`+ubuntuArchive+`"
key = "archive.asc"
[image.noble]
distribution = "ubuntu"
suite = "noble"
[node.one]
id = 10
roles = ["feed"]
`, files{
		"archive.asc": string(key),
		"roles/feed/role.toml": `
apt = ["tree"]
services = ["feed.service"]
[[file]]
path = "/srv/feed/index"
content = "from orrery\n"
[[file]]
path = "/etc/systemd/system/feed.service"
content = """
[Service]
ExecStart=/usr/bin/sleep infinity
[Install]
WantedBy=multi-user.target
"""
[[health]]
command = ["systemctl", "is-active", "feed.service"]
`,
	})
	s.run("check").want(0, "no mistakes")
	s.run("up").want(0, `one +10 +local +running +(was )?healthy`)
	s.run("up").want(0, "nothing to do")
	s.run("exec", "one", "--", "sh", "-c",
		". /etc/os-release; echo $ID $VERSION_CODENAME; systemctl is-system-running --wait; tree --noreport /srv/feed; cat /srv/feed/index").
		want(0, `ubuntu noble`, `running`, `index`, `from orrery`)
	s.run("image", "ls").want(0, `noble`)

	// Drift is observed and repaired by the same package.
	s.sh("one", "systemctl stop feed.service")
	s.run("plan", "--probe").want(10, "service feed.service is stopped, not running")
	s.run("up", "--probe").want(0, "repair", "one .*healthy")
	s.run("plan", "--probe").want(0, "nothing to do")
}
