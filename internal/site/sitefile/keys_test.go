package sitefile

import (
	"os"
	"os/user"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"orrery/internal/problem"
	"orrery/internal/site"
)

const (
	adaKey = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIGb9ECWmEzf6FQbrBZ9w7lshQhqowtrbLDFw4rXAxZuE ada@example.org"
	bobKey = `from="10.1.0.0/16" ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIObIrYz3aP1CEfB2yBL5AGBEnhhIi6KZoCWyjBXiDxWT`
	eveKey = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIFMuTzfDVHbZM3sBQzpUYlHUzBLoi3Cc2mWGBOcXWd3Q eve"
)

// withKeys returns a site directory whose nodes may be logged in to, and a directory outside of it.
func withKeys(t *testing.T, siteFile string, files map[string]string) (dir, outside string) {
	t.Helper()
	outside = t.TempDir()
	all := map[string]string{"keys.pub": "# the team\n\n" + adaKey + "\n" + bobKey + "\n" + adaKey + "\n"}
	for name, content := range files {
		if rest, ok := strings.CutPrefix(name, "OUT/"); ok {
			must(t, os.WriteFile(filepath.Join(outside, rest), []byte(content), 0o600))
		} else {
			all[name] = content
		}
	}
	all["site.toml"] = strings.ReplaceAll("site.name = \"x\"\nimage.debian.suite = \"bookworm\"\n"+siteFile, "OUT", outside)
	return siteDir(t, all), outside
}

func keysOf(t *testing.T, s *site.Site, node string) []string {
	t.Helper()
	n, ok := s.Node(node)
	if !ok {
		t.Fatalf("no node %s", node)
	}
	return n.AuthorizedKeys
}

// TestAuthorizedKeys: a node has its own keys, or else those of [defaults], and those of its groups,
// each of them once.
func TestAuthorizedKeys(t *testing.T) {
	dir, _ := withKeys(t, `defaults.authorized_keys = ["keys.pub"]
node.web = { id = 1 }
node.db = { id = 2, authorized_keys = ["`+eveKey+`"], ssh_user = "eve" }
node.closed = { id = 3, authorized_keys = [] }
group.a = { nodes = ["web", "db"], authorized_keys = ["OUT/id.pub"] }
group.b = { groups = ["a"], authorized_keys = ["OUT/id.pub", "keys.pub"] }
`, map[string]string{"OUT/id.pub": eveKey + "\r\n"})
	s, err := Load(dir)
	must(t, err)
	for node, want := range map[string][]string{
		"web": {adaKey, bobKey, eveKey}, "db": {eveKey, adaKey, bobKey}, "closed": nil,
	} {
		if got := keysOf(t, s, node); !slices.Equal(got, want) {
			t.Errorf("%s has %q", node, got)
		}
	}
	if n, _ := s.Node("db"); n.Login() != "eve" || s.AccessFile(n) != "/home/eve/.ssh/authorized_keys" {
		t.Errorf("%s logs in by %s", n.Login(), s.AccessFile(n))
	}
	if n, _ := s.Node("web"); n.Login() != "root" || s.AccessFile(n) != "/root/.ssh/authorized_keys" {
		t.Errorf("%s logs in by %s", n.Login(), s.AccessFile(n))
	}
}

// TestWrongKeys: what is no public key is refused at its line. No message quotes what a file has,
// because it may be a secret.
func TestWrongKeys(t *testing.T) {
	const private = "-----BEGIN OPENSSH PRIVATE KEY-----\nhunter2\n-----END OPENSSH PRIVATE KEY-----\n"
	for entry, want := range map[string]string{
		"id":                               "does not exist",
		"OUT/id":                           "outside the site directory",
		"OUT/no.pub":                       "no such file",
		"OUT/x/y.pub":                      "no such file",
		"OUT/private.pub":                  "is a private key",
		"private":                          "is a private key",
		"putty":                            "is a private key",
		"link.pub":                         "points outside the site directory",
		"OUT/link.pub":                     "it is a link to another directory",
		"OUT/pipe.pub":                     "not a regular file",
		"OUT/large.pub":                    "larger than allowed",
		"OUT/shadow.pub":                   "shadow.pub is not a public key",
		"two.pub":                          "two.pub, line 3 is not a public key",
		"empty.pub":                        "empty.pub has no key",
		"":                                 "there is no key",
		"ssh2.pub":                         "in the format of SSH2",
		"../keys.pub":                      "cannot be read",
		"../keys":                          "does not end in .pub",
		"~nobody-of-this-name/.ssh/id.pub": "home directory",
		"ssh-ed25519 hunter2":              "is not a public key",
		"ssh-rsa":                          "is not a public key",
		"ssh-ed25519 " + strings.Repeat("A", 12<<10):                                                 "is not a public key",
		"ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIGb9ECWmEzf6FQbrBZ9w7lshQhqowtrbLDFw4rXAxZuE a\\u0007b": "is not a public key",
		strings.ReplaceAll(private, "\n", "\\n"):                                                     "is a private key",
	} {
		dir, outside := withKeys(t, "[node.web]\nid = 1\nauthorized_keys = [\n\"keys.pub\",\n\""+entry+"\",\n]\n",
			map[string]string{"private": private, "putty": "PuTTY-User-Key-File-3: hunter2\n", "OUT/private.pub": private,
				"OUT/id": private, "OUT/large.pub": strings.Repeat(adaKey+"\n", 2000), "OUT/shadow.pub": "root:hunter2:1\n",
				"two.pub": adaKey + "\n\nhunter2\n", "empty.pub": "# none\n",
				"ssh2.pub": "---- BEGIN SSH2 PUBLIC KEY ----\nhunter2\n"})
		must(t, os.Symlink("/etc/hostname", filepath.Join(dir, "link.pub")))
		must(t, os.Symlink("/etc/shadow", filepath.Join(outside, "link.pub")))
		must(t, unix.Mkfifo(filepath.Join(outside, "pipe.pub"), 0o600))
		_, err := Load(dir)
		if problem.ExitCode(err) != int(problem.Mistake) || !strings.Contains(err.Error(), want) ||
			!strings.HasPrefix(err.Error(), "site.toml:7: authorized_keys[1]: ") || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%q: %v, not %s", problem.Truncate(entry, 80), err, want)
		}
	}
}

// TestHome: "~" is the home directory of the owner of the site directory, for every caller.
func TestHome(t *testing.T) {
	me, err := user.Current()
	if err != nil {
		t.Skip(err)
	}
	for _, home := range []string{"~", "~" + me.Username} {
		dir, _ := withKeys(t, "node.web = { id = 1, authorized_keys = [\""+home+"/.ssh/orrery-test-has-none.pub\"] }\n", nil)
		t.Setenv("HOME", "/elsewhere")
		if _, err := Load(dir); err == nil || !strings.Contains(err.Error(),
			me.HomeDir+"/.ssh/orrery-test-has-none.pub cannot be read") {
			t.Errorf("%s: %v", home, err)
		}
	}
}

// TestKeptKeys: the copy of a site directory has the keys from outside of it, because it is read on
// other hosts. An original has none of them, even if it has a file of that name.
func TestKeptKeys(t *testing.T) {
	dir, outside := withKeys(t, "node.web = { id = 1, authorized_keys = [\"OUT/id.pub\", \"keys.pub\"] }\n",
		map[string]string{"OUT/id.pub": eveKey + "\n"})
	to := filepath.Join(t.TempDir(), "copy")
	_, err := CopyText(dir, to)
	must(t, err)
	must(t, os.RemoveAll(outside))
	for _, home := range []string{dir, to} {
		s, err := LoadStamped(to, home, nil)
		must(t, err)
		if got := keysOf(t, s, "web"); !slices.Equal(got, []string{eveKey, adaKey, bobKey}) {
			t.Errorf("the copy has %q", got)
		}
	}
	if _, err := Load(to); err == nil || !strings.Contains(err.Error(), "cannot be read") {
		t.Errorf("read as an original: %v", err)
	}
}

// TestManyKeys: the number of keys of a node is limited.
func TestManyKeys(t *testing.T) {
	var lines strings.Builder
	for i := range maxNodeKeys + 1 {
		lines.WriteString(adaKey + strings.Repeat("x", i%40) + strings.Repeat("y", i/40) + "\n")
	}
	dir, _ := withKeys(t, "defaults.authorized_keys = [\"many\"]\nnode.web = { id = 1 }\n",
		map[string]string{"many": lines.String()})
	if _, err := Load(dir); err == nil || !strings.HasPrefix(err.Error(), "site.toml:3: authorized_keys has 1001 keys") ||
		strings.Contains(err.Error(), "\n") {
		t.Error(err)
	}
}
