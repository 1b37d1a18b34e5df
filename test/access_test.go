package test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestAccess: the keys in the site file let people log in at once, by the installed configuration.
// They change on a running node without a restart, and a removed key is refused.
func TestAccess(t *testing.T) {
	t.Parallel()
	here := t.TempDir()
	key, public := loginKey(t, here, "ada")
	second, secondPublic := loginKey(t, here, "bob")
	s := newSite(t, "it-access", `
[network.lan]
subnet = "10.99.160.0/24"
gateway = "10.99.160.1"
[image.debian]
suite = "bookworm"
[defaults]
memory = "96MiB"
authorized_keys = ["`+key+`.pub"]
[node.web]
id = 11
roles = ["ssh"]
`, files{"roles/ssh/role.toml": "services = [\"ssh.service\"]\n[[health]]\ntcp = 22\n"})
	s.do("up")
	s.run("plan").want(0)

	reaches := func(with string) bool {
		t.Helper()
		config := filepath.Join(here, "ssh.conf")
		if err := os.WriteFile(config, []byte(s.do("ssh-config")), 0o600); err != nil {
			t.Fatal(err)
		}
		out, err := exec.Command("ssh", "-F", config, "-i", with, "-o", "BatchMode=yes", "-o", "IdentitiesOnly=yes",
			"-o", "ConnectTimeout=20", "web", "cat", "/etc/hostname").CombinedOutput()
		if err != nil {
			t.Logf("%s: %v %s", with, err, out)
		}
		return err == nil && strings.TrimSpace(string(out)) == "web"
	}
	wantReach := func(what string, first, other bool) {
		t.Helper()
		if a, b := reaches(key), reaches(second); a != first || b != other {
			t.Errorf("%s: ada reaches it: %v, bob: %v", what, a, b)
		}
	}
	wantReach("new", true, false)

	started := s.on("web", "systemctl", "show", "--property=ExecMainStartTimestampMonotonic", "ssh.service")
	s.write("bob.pub", secondPublic)
	s.edit("site.toml", `authorized_keys = ["`+key+`.pub"]`, `authorized_keys = ["bob.pub"]`)
	s.run("plan").want(10, "authorized_keys: file /root/.ssh/authorized_keys changed")
	s.do("up")
	wantReach("changed", false, true)
	if now := s.on("web", "systemctl", "show", "--property=ExecMainStartTimestampMonotonic", "ssh.service"); now != started {
		t.Errorf("sshd was restarted: %s, then %s", started, now)
	}

	s.run("shell", "web", "--", "sh", "-c", "echo '"+strings.TrimSpace(public)+"' >> /root/.ssh/authorized_keys").want(0)
	s.run("plan", "--probe").want(10, "drifted: .*authorized_keys")
	s.do("up", "--probe")
	wantReach("repaired", false, true)

	s.edit("site.toml", `authorized_keys = ["bob.pub"]`, "")
	s.do("up")
	wantReach("none", false, false)
	s.run("plan").want(0)
}

// loginKey makes a key pair, and returns its file and the public key.
func loginKey(t *testing.T, dir, name string) (file, public string) {
	t.Helper()
	file = filepath.Join(dir, name)
	out, err := exec.Command("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", name, "-f", file).CombinedOutput()
	if err != nil {
		t.Skipf("ssh-keygen: %v %s", err, out)
	}
	text, err := os.ReadFile(file + ".pub")
	if err != nil {
		t.Fatal(err)
	}
	return file, string(text)
}
