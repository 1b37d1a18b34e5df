package test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"orrery/test/need"
)

// TestAnsible: the lines of docs/howto/ssh-ansible.md work as written, with a real
// ansible-core. Only the configuration that ssh-config prints may make ssh trust a node.
func TestAnsible(t *testing.T) {
	t.Parallel()
	need.Integration(t)
	programs := ansible(t)
	key := filepath.Join(t.TempDir(), "id")
	if out, err := exec.Command("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", key).CombinedOutput(); err != nil {
		t.Fatalf("ssh-keygen: %v\n%s", err, out)
	}
	public, err := os.ReadFile(key + ".pub")
	if err != nil {
		t.Fatal(err)
	}
	s := newSite(t, "it-ansible", `
[network.lan]
subnet = "10.99.41.0/24"
gateway = "10.99.41.1"
[image.debian]
suite = "bookworm"
[node."web{1..2}"]
id = 11
roles = ["web"]
`, files{
		"roles/web/role.toml": "apt = [\"python3\"]\n[[file]]\npath = \"/root/.ssh/authorized_keys\"\nmode = \"0600\"\ntemplate = \"keys\"\n[[health]]\ntcp = 22\n",
		"roles/web/keys":      string(public),
	})
	s.do("up")

	here := t.TempDir()
	page, err := os.ReadFile("../docs/howto/ssh-ansible.md")
	if err != nil {
		t.Fatal(err)
	}
	_, script, _ := strings.Cut(string(page), "$ cat inventory.sh\n")
	script, _, _ = strings.Cut(script, "$ ")
	if err := os.WriteFile(filepath.Join(here, "inventory.sh"), []byte(s.asHere(script)), 0o755); err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{"orrery ssh-config > toykat.conf", "ssh -F toykat.conf web1",
		"ansible -i ./inventory.sh role_web -m ping"} {
		line = strings.TrimPrefix(wholeLine(t, string(page), "$ "+line), "$ ")
		// The page stops inside a shell here.
		line = strings.Replace(line, "toykat.conf web1", "toykat.conf -i "+key+" web1 hostname", 1)
		run := exec.Command("/bin/sh", "-c", s.asHere(line))
		run.Dir = here
		run.Env = append(s.env, "PATH="+programs+":"+os.Getenv("PATH"), "HOME="+here, "ANSIBLE_PRIVATE_KEY_FILE="+key,
			"ANSIBLE_NOCOLOR=1")
		out, err := run.CombinedOutput()
		if err != nil {
			t.Errorf("%s: %v\n%s", line, err, out)
		}
		if strings.HasPrefix(line, "ansible") && strings.Count(string(out), "SUCCESS") != 2 {
			t.Errorf("%s\n%s", line, out)
		}
	}
}

// asHere adapts a line of the documents to the program and site directory of a test.
func (s *site) asHere(line string) string {
	return strings.NewReplacer("orrery -C /srv/toykat", program+" -C "+s.dir, "orrery ssh-config",
		program+" -C "+s.dir+" ssh-config").Replace(line)
}

// wholeLine returns the line of a page that begins with a text.
func wholeLine(t *testing.T, page, text string) string {
	t.Helper()
	for line := range strings.Lines(page) {
		if line = strings.TrimSpace(line); strings.HasPrefix(line, text) {
			return line
		}
	}
	t.Fatalf("no line begins with %q", text)
	return ""
}

// ansible installs ansible-core, once, and returns the directory of its programs.
func ansible(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(need.State(), "ansible")
	if _, err := os.Stat(filepath.Join(dir, "whole")); err == nil {
		return filepath.Join(dir, "bin")
	}
	for _, args := range [][]string{
		{"/usr/bin/python3", "-m", "venv", "--clear", dir},
		{filepath.Join(dir, "bin/pip"), "--quiet", "install", "ansible-core==2.19.14"},
	} {
		began := time.Now()
		if out, err := exec.Command(args[0], args[1:]...).CombinedOutput(); err != nil {
			t.Fatalf("%q after %s: %v\n%s", args, time.Since(began).Round(time.Second), err, out)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "whole"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	return filepath.Join(dir, "bin")
}
