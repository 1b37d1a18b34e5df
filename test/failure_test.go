package test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"orrery/internal/engine/nodedir"
	"orrery/internal/host"
)

const failingSite = `
[network.lan]
subnet = "10.99.%d.0/24"
[image.debian]
suite = "bookworm"
[defaults]
memory = "96MiB"
[node."n{1..2}"]
id = 11
roles = ["worker"]
[node.other]
id = 20
`

// TestLock: if two runs start at once, the second reports which process is at work.
func TestLock(t *testing.T) {
	t.Parallel()
	s := newSite(t, "it-lock", fmt.Sprintf(failingSite, 16), files{
		"roles/worker/role.toml": "[[step]]\nname = \"slow\"\nwhen = \"boot\"\nscript = \"touch /run/begun; [ $(hostname) = n1 ] || exit 0; for i in $(seq 600); do [ -e /run/go ] && exit 0; sleep 0.1; done; exit 1\"\n",
	})
	first, _, _ := s.command("up")
	wait, err := begin(first)
	if err != nil {
		t.Fatal(err)
	}
	s.eventually(func() error {
		if s.run("shell", "n1", "--", "test", "-e", "/run/begun").status != 0 {
			return fmt.Errorf("the first run has not come far")
		}
		return nil
	})
	for _, verb := range []string{"up", "down", "stop"} {
		r := s.run(verb, "--").want(5, "another run is at work here",
			fmt.Sprintf(`root runs "orrery -C .* up" \(process %d\) since \d+s`, first.Process.Pid))
		if r.took > 20*time.Second { // the first run ends when it is told to below, and no sooner
			t.Errorf("%s took %s", verb, r.took)
		}
	}
	s.run("status").want(11)
	s.run("plan").want(10)
	s.run("shell", "n1", "--", "touch", "/run/go").want(0)
	_ = wait()
	if status := first.ProcessState.ExitCode(); status != 0 {
		t.Errorf("the first run has exit status %d", status)
	}
	s.settled()
}

// TestFailingStep: a failure is reported with everything needed to fix it, and unaffected steps are
// done.
func TestFailingStep(t *testing.T) {
	t.Parallel()
	const role = `description = "fails on one node"
[[file]]
path = "/etc/worker.conf"
template = "worker.conf"

[[step]]
name = "work"
when = "boot"
script = """
echo some output
echo the reason is here >&2
test $ORRERY_NODE != n2 || exit 3
"""
`
	s := newSite(t, "it-failing", fmt.Sprintf(failingSite, 17),
		files{"roles/worker/role.toml": role, "roles/worker/worker.conf": "1\n"})
	s.run("up").want(8, "n2: configure: FAILED", `roles/worker/role.toml:6`,
		`role worker: step "work" failed on node n2`, "exit status 3",
		"the reason is here", "some output", "not done: node n2", "run the same command to resume")
	s.run("status").want(11, `n1 .*running`, `n2 .*failed`, `n2: configure failed at`, `other .*running`)
	s.run("logs", "n2").want(0, "role worker: step work", "the reason is here")
	s.run("journal").want(0, "node n2: configure.*exit status 3")
	s.edit("roles/worker/role.toml", "exit 3", "exit 0")
	s.wantPlan("configure n1", "configure n2")
	s.do("up")
	s.settled()

	// With --undo, the host is as it was before.
	s.edit("roles/worker/role.toml", "exit 0", "exit 4")
	s.write("roles/worker/worker.conf", "2\n")
	s.edit("site.toml", "[node.other]\nid = 20\n", "[node.other]\nid = 20\n[node.more]\nid = 30\n")
	before := s.init("n1") + s.init("other")
	s.run("up", "--undo").want(7, "exit status 4", "were undone")
	if after := s.init("n1") + s.init("other"); after != before {
		t.Errorf("inits were %s and are %s", before, after)
	}
	for _, n := range []string{"n1", "n2"} {
		if got := s.on(n, "cat", "/etc/worker.conf"); got != "1" {
			t.Errorf("on %s worker.conf is %q", n, got)
		}
	}
	s.run("status", "more").want(11, "absent")
	s.edit("roles/worker/role.toml", "exit 4", "exit 0")
	s.write("roles/worker/worker.conf", "1\n")
	s.edit("site.toml", "[node.more]\nid = 30\n", "")
	s.run("plan").want(0)

	// From no site to no site.
	s.do("down")
	s.edit("roles/worker/role.toml", "exit 0", "exit 5")
	s.run("up", "--undo").want(7)
	s.wantNoTrace()
	s.run("down").want(0, "nothing to take down")
}

// TestUndoReplace: a failed replacement is undone, and the former node has everything that it
// wrote.
func TestUndoReplace(t *testing.T) {
	t.Parallel()
	const role = `[[file]]
path = "/etc/layer"
content = "1"
[[step]]
name = "work"
when = "boot"
script = "test $(cat /etc/layer) = 1"
[[health]]
command = ["true"]
`
	s := newSite(t, "it-replace", fmt.Sprintf(failingSite, 18), files{"roles/worker/role.toml": role})
	s.do("up")
	s.sh("n1", "echo mine > /root/x")
	s.edit("roles/worker/role.toml", `content = "1"`, `content = "2"`)
	s.run("plan").want(10, "recreate +nodes n1, n2: role layer changed: worker: file /etc/layer changed; everything outside volumes is lost", "Disturbed: n1, n2")
	s.run("up", "--undo").want(7)
	if got := s.sh("n1", "cat /root/x /etc/layer"); got != "mine\n1" {
		t.Errorf("n1 has %q", got)
	}
	s.edit("roles/worker/role.toml", `content = "2"`, `content = "1"`)
	s.wantPlan("check n1", "check n2") // they were restarted
	s.do("up")
	s.settled()
	s.edit("roles/worker/role.toml", `content = "1"`, `content = "2"`)
	s.edit("roles/worker/role.toml", "= 1", "= 2")
	s.do("up")
	if got := s.on("n1", "cat", "/etc/layer"); got != "2" {
		t.Errorf("n1 has %q", got)
	}
	if s.run("shell", "n1", "--", "cat", "/root/x").status == 0 {
		t.Error("the private layer was not made anew")
	}
	s.settled()
}

// TestFullDisk: a full disk is reported, before and during a build, and no incomplete layer is
// left. A running node is not stopped if it could not be started again.
func TestFullDisk(t *testing.T) {
	s := newSite(t, "it-full", fmt.Sprintf(failingSite, 19), files{
		"roles/worker/role.toml": "[[step]]\nname = \"big\"\nwhen = \"build\"\nscript = \"head -c 600M /dev/zero > /opt/big\"\n",
	})
	disk := filepath.Join(s.dirs.State, "small") // where nodes have access, unlike a test's own directory
	if err := os.MkdirAll(disk, 0o711); err != nil {
		t.Fatal(err)
	}
	base := s.base()
	size, err := sh("du -sm --apparent-size " + base + " | cut -f1")
	if err != nil {
		t.Fatal(err)
	}
	image, run := disk+".img", s.dirs.Run+"-small"
	// On top of the base, there is room to begin a layer, but not to finish it.
	out, err := sh(fmt.Sprintf("truncate -s $((%s + 400))M %[2]s && mkfs.ext4 -q -m 0 %[2]s && mount -o loop %[2]s %[3]s && chmod 711 %[3]s",
		size, image, disk))
	if err != nil {
		t.Fatalf("no small disk: %v %s", err, out)
	}
	t.Cleanup(func() {
		out, err := sh("umount " + run + "; umount " + disk + " && rm -rf " + run + " " + disk + " " + image)
		if err != nil {
			t.Errorf("umount: %v %s", err, out)
		}
	})
	layers := func() []string { return glob(disk+"/store/[0-9a-f]*", disk+"/store/.staging/*") }
	elsewhere := s.at(host.Dirs{State: disk, Run: run})
	t.Cleanup(func() { elsewhere.run("down") }) // before the disk is unmounted
	if _, err := sh("fallocate -l $((" + size + " + 100))M " + disk + "/ballast"); err != nil {
		t.Fatal(err)
	}
	elsewhere.run("up").want(4, "the disk of .* is full: .* free, a build needs at least 400 MiB", "orrery image gc")
	if left := layers(); len(left) > 0 {
		t.Errorf("left of the build are %v", left)
	}
	if out, err := sh("rm " + disk + "/ballast && cp -a " + base + " " + disk + "/store/"); err != nil {
		t.Fatalf("%v %s", err, out)
	}
	elsewhere.run("up", "n1").want(4, "the disk of .* is full", "No space left on device")
	if left := layers(); len(left) != 1 {
		t.Errorf("left of the build are %v", left)
	}
	elsewhere.run("up", "other").want(0)
	_, _ = sh("cat /dev/zero > " + disk + "/ballast") // until the disk is full
	elsewhere.run("restart", "other").
		want(4, "node other was not stopped, because there is no room to start it again", "make room")
	elsewhere.run("exec", "other", "--", "true").want(0)
	elsewhere.run("down").want(0)
}

// base returns the directory of the base layer of all tests.
func (s *site) base() string {
	s.Helper()
	s.do("up", "other")
	r, err := nodedir.Of(s.dirs, s.name, 20).Read()
	if err != nil {
		s.Fatal(err)
	}
	s.do("down")
	return filepath.Join(s.dirs.State, "store", r.Base)
}
