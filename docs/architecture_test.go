package docs

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestWhereToStart: the files and folders that a newcomer is told to open first are there, and so is each package of the list.
func TestWhereToStart(t *testing.T) {
	p := one(t, "docs/architecture.md")
	quoted := regexp.MustCompile("`([^`]+)`")
	for _, row := range table(t, p, "change") {
		paths := quoted.FindAllStringSubmatch(row[1], -1)
		if len(paths) == 0 {
			t.Errorf("%s: nothing to open", row[0])
		}
		for _, m := range paths {
			info, err := os.Stat(filepath.Join(root, m[1]))
			if err != nil {
				t.Errorf("%s: there is no %s", row[0], m[1])
			} else if info.IsDir() != strings.HasSuffix(m[1], "/") {
				t.Errorf("%s: %s should end with a / if it is a folder, and only then", row[0], m[1])
			}
		}
	}
	named := map[string]bool{}
	for _, row := range table(t, p, "package") {
		for _, m := range quoted.FindAllStringSubmatch(row[0], -1) {
			named[m[1]] = true
			if _, err := os.Stat(filepath.Join(root, "internal", m[1])); err != nil {
				t.Errorf("there is no package %s", m[1])
			}
		}
	}
	for _, path := range goPackages(t) {
		parent := path
		for !named[parent] && strings.Contains(parent, "/") {
			parent = parent[:strings.LastIndex(parent, "/")]
		}
		if !named[parent] {
			t.Errorf("docs/architecture.md does not say what package %s is for", path)
		}
	}
}

// goPackages gives the packages below internal.
func goPackages(t *testing.T) []string {
	t.Helper()
	var all []string
	seen := map[string]bool{}
	err := filepath.WalkDir(filepath.Join(root, "internal"), func(path string, _ os.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		name, err := filepath.Rel(filepath.Join(root, "internal"), filepath.Dir(path))
		if err == nil && !seen[name] {
			seen[name] = true
			all = append(all, name)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}
