package sitefile

import (
	"bytes"
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/pelletier/go-toml/v2"
	"github.com/santhosh-tekuri/jsonschema/v6"

	"orrery/internal/strict"
)

// compiled compiles a schema with a validator that knows nothing of Orrery.
func compiled(t *testing.T, of strict.JSONSchema) *jsonschema.Schema {
	t.Helper()
	text, err := json.Marshal(of)
	must(t, err)
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	must(t, err)
	c := jsonschema.NewCompiler()
	must(t, c.AddResource("schema.json", doc))
	schema, err := c.Compile("schema.json")
	must(t, err)
	return schema
}

// validate validates a TOML file. It returns false if the file is not TOML.
func validate(t *testing.T, schema *jsonschema.Schema, content []byte) (err error, isTOML bool) {
	t.Helper()
	var values map[string]any
	if toml.Unmarshal(content, &values) != nil {
		return nil, false
	}
	text, err := json.Marshal(finiteOnly(values))
	must(t, err)
	instance, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	must(t, err)
	return schema.Validate(instance), true
}

// finiteOnly replaces numbers that JSON does not have.
func finiteOnly(value any) any {
	switch v := value.(type) {
	case float64:
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return nil
		}
	case map[string]any:
		for key := range v {
			v[key] = finiteOnly(v[key])
		}
	case []any:
		for i := range v {
			v[i] = finiteOnly(v[i])
		}
	}
	return value
}

// TestSchemaAccepts: the schemas accept every example, and all valid test files.
func TestSchemaAccepts(t *testing.T) {
	siteSchema, roleSchema := compiled(t, SiteSchema()), compiled(t, RoleSchema())
	checked := 0
	check := func(schema *jsonschema.Schema, name string, content []byte) {
		t.Helper()
		checked++
		if err, ok := validate(t, schema, content); err != nil || !ok {
			t.Errorf("%s: %v", name, err)
		}
	}
	for pattern, schema := range map[string]*jsonschema.Schema{
		"../../../examples/*/site.toml":         siteSchema,
		"../../../examples/*/roles/*/role.toml": roleSchema,
		"testdata/valid-[^r]*.toml":             siteSchema,
		"testdata/valid-role-*.toml":            roleSchema,
	} {
		paths, err := filepath.Glob(pattern)
		must(t, err)
		if len(paths) == 0 {
			t.Errorf("no files %s", pattern)
		}
		for _, path := range paths {
			content, err := os.ReadFile(path)
			must(t, err)
			check(schema, path, content)
		}
	}
	check(siteSchema, "site-file.md", []byte(example(t, "site-file.md")))
	check(roleSchema, "roles.md", []byte(example(t, "roles.md")))
	t.Logf("%d files", checked)
}

// expressible matches mistakes that a schema can express: keys, types, and words.
var expressible = regexp.MustCompile(`unknown key|must be (a |true or false)|( = "[^"]*"|engine "[^"]*") is (unknown|not declared)|` +
	`is not a (size|duration|mode|subnet|number or percentage)\b|has no id|the site has no name|format \d+ is unknown|` +
	`duration must|size must|is negative`)

// TestSchemaRejects: the schemas reject every invalid test file whose mistakes a schema can express.
func TestSchemaRejects(t *testing.T) {
	siteSchema, roleSchema := compiled(t, SiteSchema()), compiled(t, RoleSchema())
	paths, err := filepath.Glob("testdata/invalid-*.toml")
	must(t, err)
	rejected := 0
	for _, path := range paths {
		schema, ofFile := siteSchema, "site.toml:"
		if strings.Contains(path, "invalid-role-") {
			schema, ofFile = roleSchema, "roles/x/role.toml:"
		}
		content, err := os.ReadFile(path)
		must(t, err)
		wrong, isTOML := validate(t, schema, content)
		if !isTOML {
			continue
		}
		want, err := os.ReadFile(strings.TrimSuffix(path, ".toml") + ".want")
		must(t, err)
		if wrong != nil {
			rejected++
			continue
		}
		for line := range strings.Lines(string(want)) {
			if strings.HasPrefix(line, ofFile) && expressible.MatchString(line) {
				t.Errorf("%s: accepted in spite of %s", path, line)
			}
		}
	}
	if rejected < 20 {
		t.Errorf("only %d of %d files are rejected", rejected, len(paths))
	}
	t.Logf("%d of %d files are rejected", rejected, len(paths))
}

// TestSchemaDescribes: keys have the descriptions of the reference, enumerations and defaults.
func TestSchemaDescribes(t *testing.T) {
	s, r := SiteSchema(), RoleSchema()
	for path, want := range map[string]string{
		"network.*.nat":            "masquerade what leaves through the gateway",
		"node.*.pin":               "processors that it may run on; plan refuses those that the host lacks",
		"node.*.vm.queues":         "queues of each card",
		"defaults.pin":             "processors that it may run on; plan refuses those that the host lacks",
		"node.*.syscalls":          "both weaken the filter",
		"secret.*.generate":        "this many random characters",
		"node.*.net.*":             "a fixed address",
		"group.*.vars":             "free values for the templates of its nodes",
		"release.*.roles.receptor": "receptor-katcp replaces receptor",
		"release.*":                "1 to 9999",
		"host.*.oversubscribe":     "nodes may have this many times its processors",
		"hook.*.url":               "or a server",
	} {
		p := property(s, strings.Split(path, ".")...)
		got, _ := p["description"].(string)
		if p == nil || !strings.Contains(got, want) || strings.Contains(got, "](") {
			t.Errorf("%s: %q, without %q", path, got, want)
		}
	}
	if got, _ := property(r, "step", "when")["description"].(string); !strings.Contains(got, `"active": each time`) {
		t.Errorf("when of a step: %q", got)
	}
	if got := property(s, "cable", "*", "mtu")["description"]; got == nil {
		t.Error("the former name of veth pairs has no description")
	}
	if got := property(s, "hook", "*", "timeout")["default"]; got != "10s" {
		t.Errorf("the default timeout of a hook is %v", got)
	}
	undescribed := 0
	for _, key := range strict.Keys(&nodeTable{}) {
		if property(s, "node", "*", key)["description"] == nil {
			undescribed++
			t.Logf("node.*.%s has no description", key)
		}
	}
	if undescribed > 8 {
		t.Errorf("%d keys of nodes have no description", undescribed)
	}
}
