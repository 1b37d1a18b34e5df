package sitefile

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"orrery/internal/problem"
	"orrery/internal/site"
)

const testKey = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIGb9ECWmEzf6FQbrBZ9w7lshQhqowtrbLDFw4rXAxZuE"

// overlay creates a site directory, and in it the directory lab with a site file that extends its own. It
// returns the latter. The lab has another roles_path.
func overlay(t *testing.T) string {
	t.Helper()
	top := siteDir(t, map[string]string{
		"shared/common/role.toml": "",
		"shared/deep/role.toml":   "",
		"prod/site.toml": `[site]
name = "prod"
id = "abcdefghijklmnop"
roles_path = "../shared"
vars = { level = { a = 1, b = 2 } }
production = true

[image.debian]
import = "images/root.tar"

[network.cam]
subnet = "10.8.67.0/24"

[node.one]
id = 1
roles = ["web", "db", "common"]
requirements = "pins.txt"
authorized_keys = ["keys.pub"]
net.cam = "10.8.67.11"
cpus = 4

[node.two]
id = 2

[secret.token]
file = "../../token"

[group.first]
nodes = ["one"]

[group.second]
nodes = ["one"]
`,
		"prod/images/root.tar":         "image",
		"prod/pins.txt":                "numpy==1.0\n",
		"prod/keys.pub":                testKey + " prod",
		"prod/roles/web/role.toml":     "description = \"of prod\"\n",
		"prod/roles/web/link.toml":     "",
		"prod/roles/db/role.toml":      "secret = [{ name = \"token\" }]\nfile = [{ path = \"/x\", source = \"x\" }]\n",
		"prod/roles/db/x":              "x",
		"prod/lab/roles/web/role.toml": "description = \"of lab\"\n",
		"prod/lab/site.toml": `extends = ".."
remove = ["node.two", "site.production"]

[site]
name = "lab"
vars.level.b = 3

[node.one]
cpus = 1

[group.third]
nodes = ["one"]
`,
	})
	return filepath.Join(top, "prod", "lab")
}

// TestExtends: a site has the tables of both files, and those of the first one win. Paths are relative to
// the file that names them.
func TestExtends(t *testing.T) {
	dir := overlay(t)
	s, err := Load(dir)
	must(t, err)
	prod := filepath.Dir(dir)
	if s.Name != "lab" || s.ID != "" || s.Production || !slices.Equal(s.Extends, []string{prod}) || len(s.Nodes) != 1 {
		t.Errorf("%+v", s)
	}
	if want := (map[string]any{"level": map[string]any{"a": int64(1), "b": int64(3)}}); !reflect.DeepEqual(s.Vars, want) {
		t.Errorf("the variables are %v", s.Vars)
	}
	n := s.Nodes[0]
	if n.Limits.Cpus != 1 || n.NICs[0].Address.String() != "10.8.67.11" || n.Requirements.File != "../pins.txt" ||
		!slices.Equal(n.AuthorizedKeys, []string{testKey + " prod"}) {
		t.Errorf("%+v", n)
	}
	if want := []string{"../../shared/common", "../roles/db", "roles/web"}; !slices.Equal(roleNames(s), want) {
		t.Errorf("the roles are %v", roleNames(s))
	}
	if r, _ := s.Role("web"); r.Description != "of lab" {
		t.Errorf("the role is %+v", r)
	}
	if s.Images[0].Import != filepath.Join(prod, "images/root.tar") || s.Images[0].Stamp == "" {
		t.Errorf("%+v", s.Images[0])
	}
	if want := filepath.Join(prod, "../../token"); s.Secrets[0].File != want {
		t.Errorf("the secret is in %s and not in %s", s.Secrets[0].File, want)
	}
	var groups []string
	for _, g := range s.Groups {
		groups = append(groups, g.Name)
	}
	if !slices.Equal(groups, []string{"first", "second", "third"}) {
		t.Errorf("the groups are %v", groups)
	}
}

// TestCopyExtends: a copy of a site directory is complete without the directory that it extends, and its
// content changes with that one's.
func TestCopyExtends(t *testing.T) {
	dir := overlay(t)
	files, s, err := Text(dir)
	must(t, err)
	want := []string{".extends/.roles_path/common/role.toml", ".extends/keys.pub", ".extends/pins.txt",
		".extends/roles/db/role.toml", ".extends/roles/db/x", ".extends/site.toml", "roles/web/role.toml", "site.toml"}
	if got := slices.Sorted(maps.Keys(files)); !slices.Equal(got, want) {
		t.Errorf("the files are %v", got)
	}
	whole, text := filepath.Join(t.TempDir(), "copy"), filepath.Join(t.TempDir(), "copy")
	_, err = Copy(dir, whole)
	must(t, err)
	content, err := os.ReadFile(filepath.Join(whole, ".extends/images/root.tar"))
	if err != nil || string(content) != "image" {
		t.Errorf("the image is %q: %v", content, err)
	}
	_, err = CopyText(dir, text)
	must(t, err)
	must(t, os.Rename(filepath.Dir(dir), filepath.Dir(dir)+"-gone"))
	for _, load := range []func() (*site.Site, error){
		func() (*site.Site, error) { return LoadCopy(whole, dir) },
		func() (*site.Site, error) {
			return LoadStamped(text, dir, map[string]string{"debian": s.Images[0].Stamp})
		},
	} {
		copied, err := load()
		must(t, err)
		if s.Images[0].Stamp != copied.Images[0].Stamp {
			t.Errorf("the image is %+v", copied.Images[0])
		}
		copied.Images = s.Images
		if !reflect.DeepEqual(copied, s) {
			t.Errorf("the copy is\n%+v\nand not\n%+v", copied, s)
		}
	}
	must(t, os.RemoveAll(filepath.Join(text, ".extends")))
	if _, err := LoadStamped(text, dir, nil); err == nil || !strings.HasPrefix(err.Error(), "site.toml:1: extends: ") {
		t.Errorf("a copy without what it extends: %v", err)
	}
}

// TestExtendsPlaces: whichever file has a mistake, its file and line are reported.
func TestExtendsPlaces(t *testing.T) {
	dir := siteDir(t, map[string]string{"lab/x": ""})
	rapid.Check(t, func(t *rapid.T) {
		var want []string
		draw := func(file, head string, tables []string) {
			text := head
			for _, table := range tables {
				text += strings.Repeat("\n", rapid.IntRange(0, 3).Draw(t, "blank lines")) + "[" + table + "]\n"
				for i := range rapid.IntRange(0, 2).Draw(t, "mistakes") {
					want = append(want, fmt.Sprintf("%s:%d: unknown key", file, strings.Count(text, "\n")+1))
					text += fmt.Sprintf("zzz%d%d = 1\n", len(file), i)
				}
			}
			if err := os.WriteFile(filepath.Join(dir, "lab", file), []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		tables := rapid.Permutation([]string{"network.a", "network.b", "image.c", "hook.d"})
		draw("../site.toml", "", tables.Draw(t, "tables"))
		draw("site.toml", "extends = \"..\"\nsite.name = \"lab\"\n", tables.Draw(t, "tables of the lab"))
		_, err := Load(filepath.Join(dir, "lab"))
		for _, place := range want {
			if err == nil || !strings.Contains(err.Error(), place) {
				t.Fatalf("%v\ndoes not report %s", err, place)
			}
		}
		if n := strings.Count(fmt.Sprint(err), "unknown key"); n != len(want) {
			t.Errorf("%d mistakes instead of %d: %v", n, len(want), err)
		}
	})
}

// TestExtendsBounds: the number of site files that extend one another is limited, and all belong to one user.
//
// Promise (Files of strangers): A site file extends only those of the same user, and a limited
// number.
func TestExtendsBounds(t *testing.T) {
	files := map[string]string{"0/site.toml": "site.name = \"s0\"\nimage.debian.suite = \"bookworm\"\nnode.one.id = 1\n"}
	for i := 1; i <= maxBases+1; i++ {
		files[fmt.Sprintf("%d/site.toml", i)] = fmt.Sprintf("extends = \"../%d\"\nsite.name = \"s%d\"\n", i-1, i)
	}
	dir := siteDir(t, files)
	s, err := Load(filepath.Join(dir, fmt.Sprint(maxBases)))
	if err != nil || len(s.Extends) != maxBases || len(s.Nodes) != 1 {
		t.Errorf("%v: %v", s, err)
	}
	_, err = Load(filepath.Join(dir, fmt.Sprint(maxBases+1)))
	if want := "../1/site.toml:1: extends: more than 5 site files"; err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("%v, not %s", err, want)
	}
	if os.Geteuid() != 0 {
		t.Skip("only root can give a directory to another user")
	}
	must(t, os.Chown(filepath.Join(dir, "0"), 1, 1))
	_, err = Load(filepath.Join(dir, "1"))
	if problem.ExitCode(err) != int(problem.Mistake) || !strings.Contains(err.Error(), "belongs to another user") {
		t.Errorf("of another user: %v", err)
	}
}

// TestSecretBeside: a secret must not be in any of the site directories.
func TestSecretBeside(t *testing.T) {
	dir := siteDir(t, map[string]string{"site.toml": baseSite, "roles/tool/role.toml": "",
		"lab/site.toml": "extends = \"..\"\nsite.name = \"lab\"\nsecret.x.file = \"../x\"\n"})
	if _, err := Load(filepath.Join(dir, "lab")); err == nil || !strings.Contains(err.Error(), "site.toml:3: the secret's file") {
		t.Error(err)
	}
}

// TestEditExtended: verbs that edit the hosts of a site change only its own site file.
func TestEditExtended(t *testing.T) {
	for _, head := range []string{"extends = \"..\"\nsite.name = \"lab\"\n", "extends = \"..\"\r\nsite.name = \"lab\"\r\n",
		"extends = \"..\" # prod\nremove = [  # what the lab lacks\n\"node.one\", \"group.all\"]\nsite.name = \"lab\"\n"} {
		dir := siteDir(t, map[string]string{"site.toml": baseSite, "roles/tool/role.toml": "", "lab/site.toml": head +
			"[node.\"many{0..3}\"]\nhost = \"sv1\"\n"})
		lab := filepath.Join(dir, "lab")
		write := func(e *Edit, err error) *site.Site {
			t.Helper()
			must(t, err)
			must(t, e.Write())
			s, err := Load(lab)
			must(t, err)
			return s
		}
		hosts := func(s *site.Site) (names []string) {
			for _, h := range s.Hosts {
				names = append(names, h.Name)
			}
			return names
		}
		e, err := AddHost(lab, "sv3", "root@10.8.1.3")
		if s := write(e, err); !slices.Equal(hosts(s), []string{"sv1", "sv2", "sv3"}) || strings.Contains(e.Block, "local") {
			t.Errorf("with another host: %v, by %s", hosts(s), e.Block)
		}
		e, err = RemoveHost(lab, "sv2")
		if s := write(e, err); !slices.Equal(hosts(s), []string{"sv1", "sv3"}) {
			t.Errorf("without a host of the other file: %v", hosts(s))
		}
		e, err = RemoveHost(lab, "sv3")
		if s := write(e, err); !slices.Equal(hosts(s), []string{"sv1"}) {
			t.Errorf("without its own host: %v", hosts(s))
		}
		if now, err := os.ReadFile(filepath.Join(dir, "site.toml")); err != nil || string(now) != baseSite {
			t.Errorf("the other file is\n%s: %v", now, err)
		}
	}
}

func TestSplitKey(t *testing.T) {
	for key, want := range map[string][]string{
		"backup": {"backup"}, "node.a.net.cam": {"node", "a", "net", "cam"}, "node.many{00..63}": {"node", "many{00..63}"},
		`node."many{0..3}".cpus`: {"node", "many{0..3}", "cpus"}, "node.'a.b'": {"node", "a.b"},
		"": nil, ".": nil, "a.": nil, ".a": nil, `"a`: nil, `"a"b`: nil, `""`: nil, "a..b": nil,
		strings.Repeat("a.", maxNesting) + "a": nil,
	} {
		if got, ok := splitKey(key); ok != (want != nil) || ok && !slices.Equal(got, want) {
			t.Errorf("%s is %q, not %q", key, got, want)
		}
	}
}

// TestValuesOfAllFiles: the number of values is limited for all site files together.
func TestValuesOfAllFiles(t *testing.T) {
	l := newLoader(nowhere())
	l.values = maxValues - 1
	if l.parse("../site.toml", []byte("a = 1\n")) == nil || l.parse("../../site.toml", []byte("a = 1\n")) != nil {
		t.Errorf("the files have %d values: %v", l.values, l.report.list())
	}
	if l.parse("roles/x/role.toml", []byte("a = 1\n")) == nil {
		t.Error("the files of roles count too")
	}
}

// TestRemoveFromRange: nodes that are removed from a range leave the others as they were. A table that is
// removed and written again is a new one.
func TestRemoveFromRange(t *testing.T) {
	const top = "site.name = \"prod\"\nimage.debian.suite = \"bookworm\"\nnetwork.lan.subnet = \"10.8.67.0/24\"\n" +
		"[node.\"many{08..11}\"]\nid = 10\nnet.lan = \"10.8.67.20\"\n"
	dir := siteDir(t, map[string]string{"site.toml": top,
		"mid/site.toml": "extends = \"..\"\nremove = [\"node.many{09..10}\"]\nsite.name = \"mid\"\n",
		"low/site.toml": "extends = \"../mid\"\nremove = ['node.\"many{08..11}\"']\nsite.name = \"low\"\n" +
			"[node.\"many{08..11}\"]\nid = 20\nnet.lan = \"10.8.67.30\"\n"})
	for name, want := range map[string]string{"mid": "many08 10 10.8.67.20, many11 13 10.8.67.23",
		"low": "many08 20 10.8.67.30, many09 21 10.8.67.31, many10 22 10.8.67.32, many11 23 10.8.67.33"} {
		s, err := Load(filepath.Join(dir, name))
		must(t, err)
		var nodes []string
		for _, n := range s.Nodes {
			nodes = append(nodes, fmt.Sprintf("%s %d %s", n.Name, n.ID, n.NICs[0].Address))
		}
		if got := strings.Join(nodes, ", "); got != want {
			t.Errorf("%s has %s, not %s", name, got, want)
		}
	}
}

// TestRestoredBase: a restored site directory is complete. If the other one is there as well, it is used if
// its site file is the same, and otherwise one of the two must go.
func TestRestoredBase(t *testing.T) {
	dir := overlay(t)
	s, err := Load(dir)
	must(t, err)
	must(t, CopyBase(dir, filepath.Join(dir, KeptBase)))
	again, err := Load(dir)
	if err != nil || !reflect.DeepEqual(again, s) {
		t.Errorf("with both: %v", err)
	}
	base := filepath.Join(dir, "../site.toml")
	text, err := os.ReadFile(base)
	must(t, err)
	must(t, os.WriteFile(base, append(text, '\n'), 0o644))
	want := "site.toml:1: extends: ../site.toml differs from what was restored in .extends (remove .extends"
	if _, err := Load(dir); err == nil || !strings.HasPrefix(err.Error(), want) {
		t.Errorf("%v, not %s", err, want)
	}
	moved := filepath.Join(t.TempDir(), "lab")
	must(t, os.CopyFS(moved, os.DirFS(dir)))
	files, restored, err := Text(moved)
	must(t, err)
	if len(files) != 8 || len(restored.Nodes) != 1 || len(restored.Roles) != 3 {
		t.Errorf("restored are %d files, %+v", len(files), restored)
	}
	if from := restored.Images[0].From; from != filepath.Join(moved, KeptBase, "images/root.tar") {
		t.Errorf("the image is read from %s", from)
	}
	if CopyBase(filepath.Dir(dir), filepath.Join(t.TempDir(), "x")) == nil {
		t.Error("a site file that extends no other is copied")
	}
}
