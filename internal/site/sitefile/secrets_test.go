package sitefile

import (
	"slices"
	"strings"
	"testing"

	"orrery/internal/site/secretspec"
)

// TestSecretForms: the format and the nodes of a secret are read, and a format alone generates it.
func TestSecretForms(t *testing.T) {
	s := mustLoad(t, `site.name = "x"
[secret.key]
generate = 16
per = "node"
readers = ["portal"]
[secret.fsid]
format = "uuid"
[secret.old]
file = "/root/old"
`)
	key, _ := s.Secret("key")
	fsid, _ := s.Secret("fsid")
	old, _ := s.Secret("old")
	if key.Generate != 16 || secretspec.Name(key, "db") != "key@db" || !secretspec.Allows(key, "portal") ||
		secretspec.Allows(key, "db") {
		t.Errorf("%+v", key)
	}
	if fsid.Generate != defaultSecretLength || fsid.Format != secretspec.UUID || secretspec.Name(fsid, "db") != "fsid" ||
		!secretspec.Allows(fsid, "db") || old.Generate != 0 {
		t.Errorf("%+v, %+v", fsid, old)
	}
	for stored, want := range map[string][2]string{"fsid": {"fsid"}, "key@db": {"key", "db"}} {
		if name, node := secretspec.Split(stored); name != want[0] || node != want[1] {
			t.Errorf("%s: %s of %s", stored, name, node)
		}
	}
}

// TestReaders: a role that is not among the readers of a secret cannot list the secret, and the error names the
// line. A twin in which another role takes the place of a reader is checked, too.
func TestReaders(t *testing.T) {
	files := map[string]string{
		"site.toml": `site.name = "x"
image.d.suite = "bookworm"
[secret.key]
format = "hex"
per = "node"
readers = ["osd"]
[node.a]
id = 1
image = "d"
roles = ["osd"]
[node.b]
id = 2
image = "d"
roles = ["mon"]
`,
		"roles/osd/role.toml": "[[secret]]\nname = \"key\"\n[[file]]\npath = \"/etc/key\"\ntemplate = \"key.tmpl\"\n",
		"roles/osd/key.tmpl":  "key={{ secret \"key\" }}\n{{ fingerprint \"key\" }}\n",
		"roles/mon/role.toml": "services = []\n",
	}
	with := func(path, content string) map[string]string {
		all := map[string]string{}
		for p, c := range files {
			all[p] = c
		}
		all[path] = content
		return all
	}
	if _, err := Load(siteDir(t, files)); err != nil {
		t.Fatal(err)
	}
	simulated := with("roles/osd/role.toml", "simulated_by = \"sim\"\n"+files["roles/osd/role.toml"])
	simulated["roles/sim/role.toml"] = "[[secret]]\nname = \"key\"\n"
	for want, files := range map[string]map[string]string{
		`roles/mon/role.toml:3: role mon may not read secret key, which only osd may (add "mon" to readers in [secret.key], or remove this [[secret]])`: with(
			"roles/mon/role.toml", "services = []\n[[secret]]\nname = \"key\"\n"),
		"roles/sim/role.toml:2: role sim may not read secret key": simulated,
	} {
		if _, err := Load(siteDir(t, files)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, not %s", err, want)
		}
	}
	shared, err := Load(siteDir(t, files))
	if err != nil {
		t.Fatal(err)
	}
	key, _ := shared.Secret("key")
	if names := secretspec.Names(shared, key); !slices.Equal(names, []string{"key@a"}) {
		t.Errorf("stored are %v", names)
	}
}
