//go:build cloud

package test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"orrery/test/need"
)

// TestCloud: a cloud disk image boots by UEFI, gets its identity from its seed, and gets its role
// over SSH while it runs. It is then a node like any other: it is restarted and restored from a
// snapshot. Only make test-cloud runs this test, since it takes minutes in emulation.
func TestCloud(t *testing.T) {
	dir := filepath.Join(need.State(), "cloud")
	disk := filepath.Join(dir, "debian-12.qcow2")
	if _, err := os.Stat(disk); err != nil {
		must(t, os.MkdirAll(dir, 0o700))
		cmd := exec.CommandContext(t.Context(), "../scenarios/cloud/image", disk+".new")
		cmd.Stdout, cmd.Stderr = os.Stderr, os.Stderr
		must(t, cmd.Run())
		must(t, os.Rename(disk+".new", disk))
	}
	role := "apt = [\"bc\"]\n" + strings.Replace(greeterRole, `"20s"`, `"5m"`, 1) +
		"[[step]]\nname = \"greeting\"\nwhen = \"build\"\nscript = \"hostname > /etc/greeting\"\n"
	s := newSite(t, "it-cloud", `
[network.lan]
subnet = "10.99.123.0/24"
gateway = "10.99.123.1"
nat = true
[image.cloud]
import = "`+disk+`"
login = "ada"
firmware = "uefi"
[node.web]
id = 10
engine = "kvm"
memory = "512MiB"
roles = ["greeter"]
`, files{"roles/greeter/role.toml": role, "roles/greeter/greeter.py": greeterSays("one")})
	wants := func(answer, script string) {
		t.Helper()
		if got := s.sh("web", script); got != answer {
			t.Errorf("%s: %q, not %q", script, got, answer)
		}
	}
	s.do("up")
	s.settled()
	wants("efi", "[ -d /sys/firmware/efi ] && echo efi")
	wants("web", "cat /etc/greeting")
	wants("42", "echo '6*7' | bc")
	if text, err := greeted("10.99.123.10:7000"); text != "one" {
		t.Errorf("its service says %q: %v", text, err)
	}

	s.sh("web", "echo before > /root/word; sync")
	taken := s.snapshot()
	s.sh("web", "echo after > /root/word; sync")
	s.do("restart", "web")
	wants("after", "cat /root/word")
	s.do("snapshot", "restore", taken.ID, "--yes-restore", s.name)
	wants("before", "cat /root/word")
	s.settled()
	s.do("down")
}
