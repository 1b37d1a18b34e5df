package docs_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"
)

// optionComment matches the comment of an option: Default `2`: what it is. Or Required: what it is.
var optionComment = regexp.MustCompile(`^(?:Default ([^:]+)|Required): (.+)$`)

// TestLabOptions: the tables of options in docs/lab.md have what the comments of their fields say.
func TestLabOptions(t *testing.T) {
	path := filepath.Join(root, "docs/lab.md")
	page := one(t, "docs/lab.md").text
	want := page
	dirs, _ := filepath.Glob(filepath.Join(root, "internal/lab/test/*/"))
	found := 0
	for _, dir := range dirs {
		rows := optionRows(t, dir)
		if rows == "" {
			continue
		}
		found++
		kind := filepath.Base(dir)
		block := regexp.MustCompile("(?s)(<!-- " + kind + ": generated [^\n]*-->\n).*?(<!-- " + kind + ": end -->\n)")
		if !block.MatchString(want) {
			t.Errorf("docs/lab.md has no place for the options of %s", kind)
		}
		table := "\n| option | default | |\n|---|---|---|\n" + rows + "\n"
		want = block.ReplaceAllString(want, "${1}"+strings.ReplaceAll(table, "$", "$$")+"${2}")
	}
	if found < 7 {
		t.Fatalf("only %d kinds of tests have options", found)
	}
	if *update && !t.Failed() {
		if err := os.WriteFile(path, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	} else if page != want {
		t.Error("docs/lab.md is not what the options say: go test ./docs -run TestLabOptions -update")
	}
}

// optionRows returns the rows of the table for the options that a package declares, or "" if it has none.
func optionRows(t *testing.T, dir string) string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	for _, path := range files {
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(file, func(n ast.Node) bool {
			spec, ok := n.(*ast.TypeSpec)
			if !ok || strings.ToLower(spec.Name.Name) != "options" {
				return true
			}
			fields, ok := spec.Type.(*ast.StructType)
			if !ok {
				return true
			}
			for _, f := range fields.Fields.List {
				if f.Tag == nil {
					continue
				}
				key := reflect.StructTag(strings.Trim(f.Tag.Value, "`")).Get("toml")
				m := optionComment.FindStringSubmatch(strings.Join(strings.Fields(f.Doc.Text()), " "))
				if m == nil {
					t.Errorf("%s: write above %s: Default `VALUE`: what it is. Or Required: what it is", path, key)
					continue
				}
				fmt.Fprintf(&b, "| `%s` | %s | %s |\n", key, m[1], m[2])
			}
			return true
		})
	}
	return b.String()
}
