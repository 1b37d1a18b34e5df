package test

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"orrery/internal/engine/nodedir"
)

// TestLife: privileged nodes, shrinking ranges, nodes without autostart, stop and start.
func TestLife(t *testing.T) {
	t.Parallel()
	s := newSite(t, "it-life", `
[network.lan]
subnet = "10.99.11.0/24"
gateway = "10.99.11.1"
[image.debian]
suite = "bookworm"
[defaults]
memory = "96MiB"
[node."n{1..4}"]
id = 11
[node.strong]
id = 20
privileged = true
[node.asleep]
id = 30
autostart = false
`, nil)
	s.do("up")
	const ofHost = " 4294967295" // as many ids as exist; only the host can tell which host ids they are
	if got := s.sh("strong", "cat /proc/1/uid_map"); !strings.HasSuffix(got, ofHost) {
		t.Errorf("strong is not privileged: %s", got)
	}
	if got := s.sh("n1", "cat /proc/1/uid_map"); strings.HasSuffix(got, ofHost) {
		t.Errorf("n1 is privileged: %s", got)
	}
	if got := s.sh("n3", "ip -4 -o addr show eth0 | grep -o 'inet [0-9.]*'"); got != "inet 10.99.11.13" {
		t.Errorf("n3 has the address %s", got)
	}

	// A node without autostart is made, and stays started or stopped as the user leaves it.
	s.do("stop", "asleep")
	s.run("plan").want(0)
	s.run("status").want(0, "asleep .*stopped +off")
	s.do("up", "asleep")
	s.on("asleep", "true")
	s.run("plan").want(0)

	// The range shrinks, and nodes that are no longer declared are removed.
	others := s.init("n1") + s.init("strong")
	s.edit("site.toml", "n{1..4}", "n{1..3}")
	s.wantPlan("names local", "destroy n4")
	s.do("up", "n1", "n2", "n3", "strong") // a selection leaves other nodes alone
	s.run("plan").want(10, "n4: no longer declared")
	s.do("up")
	s.settled()
	if now := s.init("n1") + s.init("strong"); now != others {
		t.Error("other nodes were started anew")
	}
	if left := glob(nodedir.Of(s.dirs, s.name, 14).Path()); len(left) > 0 {
		t.Errorf("n4 is still there: %v", left)
	}
	if got := s.run("shell", "n1", "--", "getent", "-s", "files", "hosts", "n4").status; got == 0 {
		t.Error("n1 still knows n4")
	}

	// What a node wrote survives a stop, but not the removal of the node.
	s.sh("n2", "echo kept > /root/x")
	s.do("stop", "n2")
	s.run("status").want(11, "n2 .*stopped")
	s.run("shell", "n2", "--", "true").want(1, "node n2 does not run")
	s.run("stop", "n2").want(0, "nothing to do: all selected nodes are stopped")
	s.do("start", "n2")
	s.sh("n2", "grep kept /root/x")
	s.run("start", "n2").want(0, "nothing to do: all selected nodes are running")
	s.do("down", "n2")
	s.do("up")
	if s.run("shell", "n2", "--", "cat", "/root/x").status == 0 {
		t.Error("what n2 wrote outlived its end")
	}

	// A privileged node becomes an ordinary one, and keeps what it wrote.
	s.sh("strong", "echo kept > /root/x; chown nobody /root/x")
	s.edit("site.toml", "privileged = true\n", "")
	s.wantPlan("stop strong", "reshape strong", "start strong")
	s.do("up")
	if got := s.sh("strong", "cat /root/x; stat -c %U /root/x"); got != "kept\nnobody" {
		t.Errorf("strong has %q", got)
	}
	s.settled()

	// A node that its user shut down, and one whose processes all died, are started again.
	_ = s.run("shell", "n1", "--", "poweroff")
	s.eventually(func() error { return wantStatus(s.run("status", "n1"), 11) })
	s.wantPlan("start n1")
	s.do("up")
	s.settled()
}

// TestProduction: in production, commands that destroy or stop nodes require the site's name.
func TestProduction(t *testing.T) {
	t.Parallel()
	s := newSite(t, "it-production", `
site.production = true
image.debian.suite = "bookworm"
node.one = { id = 10, net = {} }
`, nil)
	s.do("up")
	before := s.init("one")
	for _, verb := range []string{"stop", "down"} {
		s.run(verb).want(9, "not confirmed; nothing was done", "--yes-production it-production")
		s.run(verb, "--yes-production", "another").want(9)
	}
	if after := s.init("one"); after != before {
		t.Errorf("init of one was %s and is %s", before, after)
	}
	s.run("stop", "--yes-production", s.name).want(0)
	s.run("start").want(0)
	s.run("down", "--yes-production", s.name).want(0)
}

func wantStatus(r result, status int) error {
	if r.status != status {
		return os.ErrInvalid
	}
	return nil
}

// TestResume: after a reboot of the host, everything that was up is started again.
func TestResume(t *testing.T) {
	t.Parallel()
	home := newHome(t, "resume")
	s := newSite(t, "it-resume", `
[network.lan]
subnet = "10.99.15.0/24"
gateway = "10.99.15.1"
nat = true
[image.debian]
suite = "bookworm"
[node."n{1..2}"]
id = 11
roles = ["keeper"]
memory = "96MiB"
[secret.token]
generate = 20
`, files{"roles/keeper/role.toml": `
[[secret]]
name = "token"
[[volume]]
name = "data"
path = "/srv/data"
`})
	s.keepIn(home)
	s.do("up")
	s.sh("n1", "echo kept | tee /root/x > /srv/data/x")
	token := s.on("n1", "cat", "/etc/orrery/secrets/token")
	s.reboot()
	s.run("status").want(11, "n1 .*stopped")
	s.run("resume").want(0, "it-resume from ", "n1 .*running")
	s.settled()
	if got := s.sh("n1", "cat /root/x /srv/data/x /etc/orrery/secrets/token"); got != "kept\nkept\n"+token {
		t.Errorf("n1 has %q", got)
	}
	s.sh("n1", "ping -c 1 -W 5 n2")
	s.run("resume").want(0, "nothing to do")
	s.do("down")
	s.run("resume").want(0)
	s.run("status").want(11, "n1 .*absent")
}

// forgetBoot makes a trial on record one of an earlier boot: it is watched again once its nodes are up.
func (s *site) forgetBoot() {
	s.Helper()
	record := filepath.Join(s.dirs.Site(s.name), "releases.json")
	text, err := os.ReadFile(record)
	if errors.Is(err, fs.ErrNotExist) {
		return
	}
	boot, unknown := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err := errors.Join(err, unknown); err != nil {
		s.Fatal(err)
	}
	earlier := bytes.ReplaceAll(text, bytes.TrimSpace(boot), []byte("00000000-0000-4000-8000-000000000000"))
	if err := os.WriteFile(record, earlier, 0o600); err != nil {
		s.Fatal(err)
	}
}

// reboot simulates a power cut and a boot for the site.
func (s *site) reboot() {
	s.Helper()
	for _, w := range s.watchers() {
		_ = syscall.Kill(w, syscall.SIGKILL)
	}
	for _, group := range glob("/sys/fs/cgroup/*/orrery/"+s.name, "/sys/fs/cgroup/orrery/"+s.name) {
		_, _ = sh("find " + group + " -name cgroup.procs | xargs cat | sort -u | xargs -r kill -9 2>/dev/null")
	}
	s.eventually(func() error {
		for _, group := range glob("/sys/fs/cgroup/*/orrery/"+s.name, "/sys/fs/cgroup/orrery/"+s.name) {
			if out, err := sh("find " + group + " -depth -type d -exec rmdir {} +"); err != nil {
				return err
			} else if out != "" {
				return os.ErrExist
			}
		}
		return nil
	})
	for _, script := range []string{
		"for l in $(ip -o -d link | grep 'alias orrery " + s.name +
			"[ .]' | cut -d: -f2 | cut -d@ -f1); do ip link del $l; done",
		"for t in $(nft list tables | grep -o 'orrery-" + s.name + "\\(\\.[0-9]*\\)\\?$'); do nft delete table inet $t; done",
	} {
		if out, err := sh(script); err != nil {
			s.Fatalf("%s: %v %s", script, err, out)
		}
	}
	if err := os.RemoveAll(s.dirs.Run + "/sites/" + s.name); err != nil {
		s.Fatal(err)
	}
	s.forgetBoot()
	syscall.Sync()
}
