package experiment

import (
	"fmt"
	"maps"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"orrery/internal/lab/place"
	"orrery/internal/lab/test"
	"orrery/internal/problem"
	"orrery/internal/strict"
)

// must holds the options that a kind cannot do without.
var must = map[string]string{
	"command": `command = ["true"]
figures = [{name = "x", unit = "1", regex = "x=(.*)"}]`,
}

// made creates a test of a kind, and returns it with its options.
func made(t *testing.T, kind, options string) (test.Test, any) {
	t.Helper()
	root, syntax := strict.Parse([]byte(options))
	if syntax != nil {
		t.Fatal(syntax)
	}
	var into any
	one, err := allKinds()[kind](func(options any) error {
		into = options
		var wrong problem.List
		strict.Table(root, "", func(_ *strict.Node, p *problem.Problem) { wrong = append(wrong, p) }, options)
		return wrong.OrNil()
	})
	if err != nil {
		t.Fatalf("%s: %v", kind, err)
	}
	return one, into
}

// TestDefaults: every kind works without options, except those in must.
func TestDefaults(t *testing.T) {
	for _, kind := range slices.Sorted(maps.Keys(allKinds())) {
		t.Run(kind, func(t *testing.T) {
			one, _ := made(t, kind, must[kind])
			if one.Time() <= 0 {
				t.Errorf("a trial takes %v", one.Time())
			}
			needs(t, one.Needs())
			figures(t, one.Figures())
		})
	}
}

var debian = regexp.MustCompile(`^[a-z0-9][a-z0-9+.-]+$`)

func needs(t *testing.T, n test.Needs) {
	for _, p := range n.Packages {
		if !debian.MatchString(p) {
			t.Errorf("%q is no package", p)
		}
	}
	for _, tool := range n.Tools {
		if tool != place.Orrery && tool != place.Micro {
			t.Errorf("%q is no tool", tool)
		}
	}
	for _, p := range n.Programs {
		if p.Name == "" || len(p.Source) == 0 || !slices.Contains(p.Compile, "SOURCE") ||
			!slices.Contains(p.Compile, "PROGRAM") {
			t.Errorf("program %q cannot be compiled: %v", p.Name, p.Compile)
		}
	}
	if n.Disk < 0 {
		t.Errorf("%d bytes", n.Disk)
	}
}

func figures(t *testing.T, all []test.Figure) {
	if len(all) == 0 {
		t.Error("no figures")
	}
	seen := map[string]bool{}
	for _, f := range all {
		if f.Name == "" || seen[f.Name] || f.Name != strings.TrimSpace(f.Name) {
			t.Errorf("figure %q is there twice, or has no name", f.Name)
		}
		seen[f.Name] = true
		if !slices.Contains([]string{"bit/s", "B/s", "s", "1/s", "1", "s/Gbit"}, f.Unit) {
			t.Errorf("figure %q has unit %q", f.Name, f.Unit)
		}
		if !slices.Contains([]test.Direction{test.More, test.Less, test.Neither}, f.Better) {
			t.Errorf("figure %q is better %q", f.Name, f.Better)
		}
		if !slices.Contains([]test.Aggregate{test.Sum, test.Mean}, f.Aggregate) {
			t.Errorf("figure %q has aggregate %q", f.Name, f.Aggregate)
		}
	}
}

// own lists the keys that every test has. They are the keys of experiment's testTable.
var own = []string{"kind", "copies", "only", "limit", "source"}

// TestKeys: no option has the name of a key that every test has, and every option has a tag.
func TestKeys(t *testing.T) {
	for _, kind := range slices.Sorted(maps.Keys(allKinds())) {
		_, options := made(t, kind, must[kind])
		if options == nil {
			continue
		}
		for _, key := range strict.Keys(options) {
			if slices.Contains(own, key) {
				t.Errorf("%s: option %q is a key of every test", kind, key)
			}
		}
		for _, f := range reflect.VisibleFields(reflect.TypeOf(options).Elem()) {
			if f.IsExported() && !f.Anonymous && f.Tag.Get("toml") == "" {
				t.Errorf("%s: option %s has no tag", kind, f.Name)
			}
		}
	}
}

// TestDocumented: docs/lab.md has a row for every option of every kind, with its default.
func TestDocumented(t *testing.T) {
	text, err := os.ReadFile("../../../docs/lab.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, kind := range slices.Sorted(maps.Keys(allKinds())) {
		_, section, found := strings.Cut(string(text), fmt.Sprintf("\n### `%s`", kind))
		section, _, _ = strings.Cut(section, "\n##")
		if !found {
			t.Errorf("docs/lab.md has no section for %s", kind)
			continue
		}
		_, options := made(t, kind, must[kind])
		if options == nil {
			continue
		}
		keys := strict.Keys(options)
		for _, key := range keys {
			if !strings.Contains(section, "| `"+key+"` |") {
				t.Errorf("docs/lab.md: %s has no row for %s", kind, key)
			}
		}
		for _, m := range regexp.MustCompile("(?m)^\\| `([a-z_0-9]+)` \\| (?:`([^`]+)` \\|)?").FindAllStringSubmatch(
			section, -1) {
			if !slices.Contains(keys, m[1]) {
				t.Errorf("docs/lab.md: %s has no option %s", kind, m[1])
			} else if m[2] != "" && !same(t, options, m[1], m[2]) {
				t.Errorf("docs/lab.md: %s: the default of %s is not %s", kind, m[1], m[2])
			}
		}
	}
}

// same reports whether an option has the value that is written in TOML.
func same(t *testing.T, options any, key, value string) bool {
	root, syntax := strict.Parse([]byte(key + " = " + value))
	if syntax != nil {
		t.Errorf("%s = %s: %v", key, value, syntax)
		return false
	}
	said := reflect.New(reflect.TypeOf(options).Elem())
	strict.Table(root, "", func(_ *strict.Node, p *problem.Problem) { t.Error(p) }, said.Interface())
	for _, f := range reflect.VisibleFields(said.Type().Elem()) {
		if f.Tag.Get("toml") == key {
			// Compare as text: the same value may have a named type, and an empty list may be nil.
			return fmt.Sprint(said.Elem().FieldByIndex(f.Index)) == fmt.Sprint(
				reflect.ValueOf(options).Elem().FieldByIndex(f.Index))
		}
	}
	return false
}
