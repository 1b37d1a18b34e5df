package cli

import (
	"os"
	"strings"
	"testing"
)

// TestQueryVars: the variables of a node are printed with where each comes from, and a node may still
// be selected by any name.
func TestQueryVars(t *testing.T) {
	dir := t.TempDir()
	mustDo(t, os.WriteFile(dir+"/site.toml", []byte(`site = { name = "s", vars = { a = "x", b = 1 } }
image.debian.suite = "bookworm"
node.one = { id = 1, vars = { b = 3 } }
group.g = { nodes = ["one"], vars = { b = 2, c = { d = true } } }
`), 0o600))
	for _, c := range []struct {
		line   string
		status int
		want   string
	}{
		{"query vars one", 0, "NAME  VALUE       FROM      HIDES\na     \"x\"         site      -\n" +
			"b     3           node one  group g, site\nc     {\"d\":true}  group g   -\n"},
		{"query vars one --json", 0, `{ "name": "b", "value": 3, "from": "node one", "hides": [ "group g", "site" ] }`},
		{"query vars onne", 2, `did you mean "one"`},
		{"query vars", 2, "wrong number of arguments"},
		{"query one", 0, "one\n"},
		{"query group=g", 0, "one\n"},
	} {
		var out, errs strings.Builder
		status := Run(append([]string{"-C", dir}, strings.Fields(c.line)...), nil, nil, &out, &errs)
		got := strings.Join(strings.Fields(out.String()+errs.String()), " ")
		if status != c.status || !strings.Contains(out.String()+errs.String(), c.want) &&
			!strings.Contains(got, c.want) {
			t.Errorf("orrery %s: status %d\n%s%s", c.line, status, out.String(), errs.String())
		}
	}
}
