package test

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestSecrets: values of secrets are on the node, where they are declared, and nowhere else.
//
// Promise (What nodes may do to the host): `/etc/orrery` and its directories belong to root of the
// node, with no mode wider than before.
func TestSecrets(t *testing.T) {
	t.Parallel()
	outside := t.TempDir()
	const filed, commanded = "file-Zx81QQ-secret", "command-Kq92WW-secret"
	const key = "-----BEGIN TEST KEY-----\nbm8ga2V5IG9mIGFueWJvZHk3\nQyNTUxOQAAACB1cGhpbGw5\n-----END TEST KEY-----"
	s := newSite(t, "it-secrets", `
[network.lan]
subnet = "10.99.4.0/24"
[image.debian]
suite = "bookworm"
[node.one]
id = 10
roles = ["holder"]
[secret.filed]
file = "`+outside+`/filed"
[secret.commanded]
command = ["/bin/cat", "`+outside+`/commanded"]
[secret.key]
file = "`+outside+`/key"
[secret.made]
generate = 40
`, files{
		"roles/holder/role.toml": `
services = ["holder.service"]
[[secret]]
name = "filed"
owner = "holder:holder"
mode = "0440"
[[secret]]
name = "commanded"
[[secret]]
name = "key"
[[secret]]
name = "made"
[[step]]
name = "user"
when = "build"
script = "useradd holder"
[[file]]
path = "/etc/holder.conf"
template = "holder.conf.tmpl"
owner = "holder:holder"
mode = "0400"
[[file]]
path = "/etc/systemd/system/holder.service"
content = """
[Service]
ExecStart=/bin/sh -c 'cat /etc/orrery/secrets/made > /run/holder; exec sleep infinity'
[Install]
WantedBy=multi-user.target
"""
[[step]]
name = "indiscreet"
when = "boot"
script = """
for s in filed commanded key made; do
	echo "the value of $s is: $(cat $ORRERY_SECRETS/$s)"
	cat $ORRERY_SECRETS/$s >&2
done
cat /etc/holder.conf
"""
`,
		"roles/holder/holder.conf.tmpl": "filed={{secret \"filed\"}}\nmade={{secret \"made\"}}\nkey={{secret \"key\"}}\n",
	})
	for name, value := range map[string]string{"filed": filed + "\n", "commanded": commanded + "\n", "key": key + "\n"} {
		if err := os.WriteFile(filepath.Join(outside, name), []byte(value), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	plan := s.run("plan", "--json").want(10)
	up := s.run("up").want(0)
	made, err := os.ReadFile(filepath.Join(s.dirs.Secrets(s.name), "made"))
	if err != nil || len(made) != 40 {
		t.Fatalf("the generated secret is %d bytes long: %v", len(made), err)
	}
	if info, err := os.Stat(filepath.Join(s.dirs.Secrets(s.name), "made")); err != nil || info.Mode() != 0o600 {
		t.Errorf("its mode is %v: %v", info.Mode(), err)
	}

	for path, want := range map[string]string{
		"/etc/orrery/secrets/filed": "440 holder:holder", "/etc/orrery/secrets/commanded": "400 root:root",
		"/etc/orrery/secrets/made": "400 root:root", "/etc/holder.conf": "400 holder:holder",
		// Programs such as munged check every directory on the path.
		"/etc/orrery": "755 root:root", "/etc/orrery/secrets": "755 root:root", "/etc/orrery/files": "755 root:root",
		"/etc/orrery/env": "644 root:root", "/etc/orrery/hosts": "644 root:root",
		"/etc/orrery/inventory.json": "644 root:root",
	} {
		if got := s.on("one", "stat", "-L", "-c", "%a %U:%G", path); got != want {
			t.Errorf("%s has %s, not %s", path, got, want)
		}
	}
	for path, want := range map[string]string{
		"/etc/orrery/secrets/filed": filed, "/etc/orrery/secrets/commanded": commanded, "/etc/orrery/secrets/key": key,
		"/etc/orrery/secrets/made": string(made), "/etc/holder.conf": "filed=" + filed + "\nmade=" + string(made) +
			"\nkey=" + key,
	} {
		if got := s.on("one", "cat", path); got != want {
			t.Errorf("%s is %q, not %q", path, got, want)
		}
	}
	if status := s.run("shell", "one", "-u", "nobody", "--", "cat", "/etc/orrery/secrets/filed").status; status == 0 {
		t.Error("every user of the node can read a secret")
	}

	s.rotated(string(made), outside)

	// A failing step prints values, too.
	s.edit("roles/holder/role.toml", "cat /etc/holder.conf\n", "cat /etc/holder.conf\nexit 1\n")
	failed := s.run("up").want(8, "the value of filed is: <secret filed>")
	logs := s.run("logs", "one").want(0, "the value of commanded is: <secret commanded>")
	journal := s.run("journal", "--steps").want(0)
	values := []string{filed, commanded, string(made), s.value("made"), "bm8ga2V5IG9mIGFueWJvZHk3",
		"QyNTUxOQAAACB1cGhpbGw5"}
	for what, r := range map[string]result{"plan": plan, "up": up, "failed up": failed, "logs": logs, "journal": journal} {
		for _, v := range values {
			if strings.Contains(r.out+r.errs, v) {
				t.Errorf("%s prints %q", what, v)
			}
		}
	}
	s.do("stop") // so that everything is on disk
	searched := s.search(s.dir, values)
	for _, dir := range []string{"sites", "store", "log", "build"} {
		searched += s.search(filepath.Join(s.dirs.State, dir), values, filepath.Join(s.dirs.Secrets(s.name), "made"))
	}
	if searched < 1000 {
		t.Errorf("only %d files were searched", searched)
	}
	s.edit("roles/holder/role.toml", "exit 1\n", "")
	s.do("up") // a stopped node has lost nothing
	s.settled()
}

// value returns the value of a generated secret.
func (s *site) value(name string) string {
	s.Helper()
	text, err := os.ReadFile(filepath.Join(s.dirs.Secrets(s.name), name))
	if err != nil {
		s.Fatal(err)
	}
	value, _, _ := strings.Cut(string(text), "\n")
	return value
}

// rotated rotates the secret made: its service restarts and has the new value, and a rotation that fails
// half way shows and is finished with the same value.
func (s *site) rotated(old, outside string) {
	s.Helper()
	pid := func() string { return s.on("one", "systemctl", "show", "-P", "MainPID", "holder.service") }
	before := pid()
	s.edit("roles/holder/role.toml", "cat /etc/holder.conf\n", "cat /etc/holder.conf\nexit 1\n")
	s.run("secret", "rotate", "made").want(8)
	value := s.value("made")
	if value == old || len(value) != 40 {
		s.Errorf("the new value is %d bytes long", len(value))
	}
	if shown := s.run("secret", "ls").want(0, "generation 2 on 0 of 1 node", "orrery up finishes"); strings.Contains(
		shown.out, value) {
		s.Error("the value is shown")
	}
	s.edit("roles/holder/role.toml", "exit 1\n", "")
	s.run("secret", "rotate", "made").want(0)
	if s.value("made") != value {
		s.Error("there is a third value")
	}
	for _, path := range []string{"/etc/orrery/secrets/made", "/run/holder"} {
		if got := s.on("one", "cat", path); got != value {
			s.Errorf("%s has another value than the host", path)
		}
	}
	if pid() == before {
		s.Error("the service was not restarted")
	}
	s.run("secret", "ls").want(0, "1 of 1 node")
	s.run("secret", "rotate", "filed").want(2, "change the file, then run orrery up")
	if err := os.WriteFile(filepath.Join(outside, "filed"), []byte("file-Zx81QQ-secret\n\n"), 0o600); err != nil {
		s.Fatal(err)
	}
	s.run("plan").want(10, "secret filed: generation 2 instead of 1")
	if err := os.WriteFile(filepath.Join(outside, "filed"), []byte("file-Zx81QQ-secret\n"), 0o600); err != nil {
		s.Fatal(err)
	}
	s.settled()
}

// search looks for values in all files below a directory, with some exceptions.
func (s *site) search(dir string, values []string, but ...string) (searched int) {
	s.Helper()
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.Type().IsRegular() {
			return nil // other tests work here, too
		}
		for _, b := range but {
			if path == b {
				return nil
			}
		}
		if info, err := entry.Info(); err != nil || info.Size() > 64<<20 {
			return nil
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return nil
		}
		searched++
		for _, v := range values {
			if bytes.Contains(text, []byte(v)) {
				s.Errorf("%s holds the secret %q", path, v)
			}
		}
		return nil
	})
	if err != nil {
		s.Error(err)
	}
	return searched
}
