package draft

import (
	"os"
	"slices"
	"strings"
	"testing"
)

// TestImportAnsible: the sample inventory of Ansible's documentation becomes a site that orrery check
// accepts, in both of its forms.
func TestImportAnsible(t *testing.T) {
	converted(t, ImportAnsible, "testdata/ansible/hosts.ini", "testdata/ansible/want-ini.txt")
	converted(t, ImportAnsible, "testdata/ansible/hosts.yaml", "testdata/ansible/want-yaml.txt")
}

// TestImportAnsibleRefuses: what is no inventory is refused, and nothing is written.
func TestImportAnsibleRefuses(t *testing.T) {
	refused(t, ImportAnsible, map[string][2]string{
		"empty":          {"", "the inventory has no hosts"},
		"no hosts":       {"[a]\n[b:children]\na\n", "the inventory has no hosts"},
		"UTF-16":         {"\xff\xfea\x00", "encoded as UTF-16"},
		"a quote":        {"a\nb x=\"y\n", ":2: b x="},
		"no value":       {"a b\n", ":1: b is not NAME=VALUE"},
		"no name":        {"[a:vars]\nx\n", ":2: x is not NAME=VALUE"},
		"many hosts":     {"a[1:100]b[1:100]\n", "not the name of a host, or of up to 5000 hosts"},
		"a range":        {"a[1:b]\n", "not the name of a host"},
		"backwards":      {"a[9:1]\n", "not the name of a host"},
		"itself":         {"h\n[a:children]\nb\n[b:children]\na\n", "is a child of itself"},
		"escapes":        {"a\x1b[2J b\n", "not the name of a host"},
		"a list":         {"---\n- a\n", "no groups"},
		"nested for all": {"---\na: &a\n  children:\n    b: *a\n", "nested more than 32 levels deep"},
	})
}

// TestExpand: ranges in names of hosts are those of Ansible.
func TestExpand(t *testing.T) {
	for name, want := range map[string]string{
		"www[01:03].x": "www01.x www02.x www03.x", "db-[a:c]": "db-a db-b db-c", "n[1:9:4]": "n1 n5 n9",
		"[8:10]": "8 9 10", "r[1:2]c[a:b]": "r1ca r1cb r2ca r2cb", "plain": "plain",
	} {
		if got, ok := expand(name); !ok || !slices.Equal(got, strings.Fields(want)) {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// FuzzImportAnsible: see fuzzed.
func FuzzImportAnsible(f *testing.F) {
	for _, file := range []string{"testdata/ansible/hosts.ini", "testdata/ansible/hosts.yaml"} {
		text, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(string(text))
	}
	f.Add("a\"b\x00 x='1\"' y=\\\n[g\"]\na[1:3]\n[g\":vars]\nz\"=1\n")
	f.Add("---\na: &a {hosts: {\"x\\n\": {\"y\\\"\": [1, .nan, {z: *b}]}}, children: {b: &b {vars: {c: 1e400}}}}\n")
	fuzzed(f, ImportAnsible)
}
