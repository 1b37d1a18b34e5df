package sitefile

import (
	"reflect"
	"testing"
)

// TestGroupVars: groups have variables, which their nodes inherit in the order of the file. Nodes of
// a range do not share the result.
func TestGroupVars(t *testing.T) {
	s := mustLoad(t, `site = { name = "x", vars = { a = 1 } }
image.debian.suite = "bookworm"
[node."n{1..2}"]
id = 1
vars = { own = true }
[group.z]
nodes = ["n*"]
vars = { port = 1, list = [1] }
[group.b]
nodes = ["n2"]
vars = { port = 2 }
`)
	for i, want := range []map[string]any{
		{"own": true, "port": int64(1), "list": []any{int64(1)}}, {"own": true, "port": int64(2), "list": []any{int64(1)}},
	} {
		if got := s.VarsOf(&s.Nodes[i]); !reflect.DeepEqual(got, want) {
			t.Errorf("%s has %v", s.Nodes[i].Name, got)
		}
	}
}
