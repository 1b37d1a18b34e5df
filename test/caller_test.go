package test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"orrery/test/need"
)

// TestCaller: a caller has open files and an open directory of the host, a key in the session
// keyring, and a scheduling class, processors and limits of its own. None of these are inherited by
// what runs for a site: commands, services, steps of builds and boots, health checks, hooks.
//
// Promise (What nodes may do to the host): Programs that run for a site inherit no open file, key,
// scheduling class or limit of the caller's.
func TestCaller(t *testing.T) {
	t.Parallel()
	attack := need.Attack(t)
	program, err := os.ReadFile(attack)
	if err != nil {
		t.Fatal(err)
	}
	outside, err := os.MkdirTemp("", "orrery-caller-") // not t.TempDir, which only root may enter
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(outside) })
	told := filepath.Join(outside, "told")
	if err := os.Chmod(outside, 0o777); err != nil { //nolint:gosec // the hook runs as nobody
		t.Fatal(err)
	}
	s := newSite(t, "it-caller", `
[network.lan]
subnet = "10.99.123.0/24"
[image.debian]
suite = "bookworm"
[node.one]
id = 1
roles = ["prey"]
[hook.told]
on = ["backup-done"]
command = ["/bin/sh", "-c", "`+attack+` inherited > `+told+`-part && mv `+told+`-part `+told+`"]
`, files{
		"roles/prey/attack": string(program),
		"roles/prey/role.toml": `
services = ["prey.service"]
[[file]]
path = "/opt/attack"
source = "attack"
mode = "0755"
[[file]]
path = "/etc/systemd/system/prey.service"
source = "prey.service"
[[step]]
name = "build"
when = "build"
script = "/opt/attack inherited > /etc/prey-build"
[[step]]
name = "boot"
when = "boot"
script = "/opt/attack inherited > /var/lib/prey-boot"
[[health]]
command = ["/bin/sh", "-c", "/opt/attack inherited > /run/prey-health"]
`,
		"roles/prey/prey.service": `
[Service]
Type=oneshot
RemainAfterExit=yes
ExecStart=/opt/attack inherited
StandardOutput=file:/run/prey-service
[Install]
WantedBy=multi-user.target
`,
	})
	// A careless caller calls the program.
	careless := filepath.Join(s.TempDir(), "careless")
	if err := os.WriteFile(careless, []byte("#!/bin/sh\nexec "+attack+" inherit "+s.program+" \"$@\"\n"),
		0o755); err != nil { //nolint:gosec // a script
		t.Fatal(err)
	}
	s.program = careless
	s.do("up")
	for _, place := range []string{"/etc/prey-build", "/var/lib/prey-boot", "/run/prey-health", "/run/prey-service"} {
		if found := s.sh("one", "cat "+place); found != "" {
			t.Errorf("%s:\n%s", place, found)
		}
	}
	if found := s.do("exec", "one", "--", "/opt/attack", "inherited"); strings.Contains(found, "|") {
		t.Errorf("a command:\n%s", found)
	}
	if found := s.on("one", "/opt/attack", "inherited"); found != "" {
		t.Errorf("a shell:\n%s", found)
	}
	s.do("backup", filepath.Join(outside, "backup"))
	s.eventually(func() error {
		found, err := os.ReadFile(told)
		if text := string(found); strings.Contains(text, "key:") || strings.Contains(text, "descriptor:") {
			t.Errorf("a hook:\n%s", text)
		}
		return err
	})
}
