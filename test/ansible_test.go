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

// TestAnsible: the lines of docs/operations.md about ssh and Ansible work as written, with a real
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
[node."receptor{1..2}"]
id = 11
roles = ["receptor"]
[node.portal]
id = 21
roles = ["receptor"]
`, files{
		"roles/receptor/role.toml": "apt = [\"python3\"]\n[[file]]\npath = \"/root/.ssh/authorized_keys\"\nmode = \"0600\"\ntemplate = \"keys\"\n[[health]]\ntcp = 22\n",
		"roles/receptor/keys":      string(public),
	})
	s.do("up")

	here := t.TempDir()
	page, err := os.ReadFile("../docs/operations.md")
	if err != nil {
		t.Fatal(err)
	}
	script := block(t, string(page), "exec orrery -C /srv/toykat inventory")
	if err := os.WriteFile(filepath.Join(here, "inventory.sh"), []byte(s.asHere(script, here)), 0o755); err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{"orrery ssh-config > /root/.ssh/toykat.conf", "ssh -F /root/.ssh/toykat.conf portal",
		"ansible -i ./inventory.sh role_receptor -m ping"} {
		line = wholeLine(t, string(page), line)
		// The page stops inside a shell here.
		line = strings.Replace(line, "toykat.conf portal", "toykat.conf -i "+key+" portal hostname", 1)
		run := exec.Command("/bin/sh", "-c", s.asHere(line, here))
		run.Dir = here
		run.Env = append(s.env, "PATH="+programs+":"+os.Getenv("PATH"), "HOME="+here, "ANSIBLE_PRIVATE_KEY_FILE="+key,
			"ANSIBLE_NOCOLOR=1")
		out, err := run.CombinedOutput()
		if err != nil {
			t.Errorf("%s: %v\n%s", line, err, out)
		}
		if strings.HasPrefix(line, "ansible") && strings.Count(string(out), "SUCCESS") != 3 {
			t.Errorf("%s\n%s", line, out)
		}
	}
}

// asHere adapts a line of the documents to the program, site directory and files of a test.
func (s *site) asHere(line, here string) string {
	return strings.NewReplacer("orrery -C /srv/toykat", program+" -C "+s.dir, "orrery ssh-config",
		program+" -C "+s.dir+" ssh-config",
		"/root/.ssh/toykat.conf", filepath.Join(here, "toykat.conf")).Replace(line)
}

// block returns the fenced block of a page that contains a text.
func block(t *testing.T, page, text string) string {
	t.Helper()
	for i, part := range strings.Split(page, "```") {
		if i%2 == 1 && strings.Contains(part, text) {
			_, part, _ = strings.Cut(part, "\n")
			return part
		}
	}
	t.Fatalf("no block has %q", text)
	return ""
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
