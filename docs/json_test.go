package docs_test

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"orrery/internal/cli"
	"orrery/internal/cli/labverb"
	"orrery/internal/problem"
)

// TestReplies: what commands print with --json is as the schema says, whether they succeed or fail.
func TestReplies(t *testing.T) {
	schema, err := jsonschema.NewCompiler().Compile(filepath.Join(root, "docs/reply.schema.json"))
	if err != nil {
		t.Fatal(err)
	}
	bad := t.TempDir()
	if err := os.WriteFile(filepath.Join(bad, "site.toml"),
		[]byte("site.name = \"bad\"\nsite.nonsense = 1\n[node.x]\nid = 0\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	good := filepath.Join(root, "examples/quickstart")
	for _, c := range []struct {
		args   []string
		status int
		errors int // at least
		result string
	}{
		{[]string{"version", "--json"}, 0, 0, `"arch"`},
		{[]string{"--json", "-C", good, "check"}, 0, 0, `"nodes"`},
		{[]string{"-C", good, "query", "--json", "role=worker"}, 0, 0, `"ansible_host"`},
		{[]string{"-C", good, "graph", "--declared", "--json"}, 0, 0, `"output"`},
		{[]string{"-C", bad, "check", "--json"}, int(problem.Mistake), 2, `null`},
		{[]string{"-C", good, "query", "role=nobody", "--json"}, int(problem.Usage), 1, `null`},
		{[]string{"-C", "/nowhere", "check", "--json"}, int(problem.Mistake), 1, `null`},
		{[]string{"frobnicate", "--json"}, int(problem.Usage), 1, `null`},
		{[]string{"plan", "--nonsense", "--json"}, int(problem.Usage), 1, `null`},
	} {
		var out, errs bytes.Buffer
		status := cli.Run(c.args, labverb.Lab{}, strings.NewReader(""), &out, &errs)
		object, err := jsonschema.UnmarshalJSON(bytes.NewReader(out.Bytes()))
		if err == nil {
			err = schema.Validate(object)
		}
		var reply struct {
			Result json.RawMessage
			Errors []any
			Status int
		}
		if err == nil {
			err = json.Unmarshal(out.Bytes(), &reply)
		}
		if err != nil {
			t.Errorf("orrery %s: %v\n%s", strings.Join(c.args, " "), err, out.String())
			continue
		}
		if status != c.status || reply.Status != status || len(reply.Errors) < c.errors ||
			!strings.Contains(string(reply.Result), c.result) {
			t.Errorf("orrery %s: status %d\n%s", strings.Join(c.args, " "), status, out.String())
		}
		if c.errors > 0 && errs.Len() == 0 {
			t.Errorf("orrery %s says nothing to people", strings.Join(c.args, " "))
		}
	}
	text, err := os.ReadFile(filepath.Join(root, "docs/reply.schema.json"))
	if err != nil {
		t.Fatal(err)
	}
	for status := range 256 {
		if name := problem.Kind(status).String(); !strings.HasPrefix(name, "status-") &&
			!strings.Contains(string(text), `"`+name+`"`) {
			t.Errorf("the schema does not have the kind %s", name)
		}
	}
}
