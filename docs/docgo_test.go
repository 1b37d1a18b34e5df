package docs_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestDocFiles: the files and decisions that a doc.go names exist.
func TestDocFiles(t *testing.T) {
	file, decision := regexp.MustCompile(`[\w/]+\.go\b`), regexp.MustCompile(`decision (\d+)`)
	found := 0
	for _, p := range goPackages(t) {
		dir := filepath.Join(root, "internal", p.path)
		text, err := os.ReadFile(filepath.Join(dir, "doc.go"))
		if err != nil {
			continue
		}
		found++
		prose := strings.ReplaceAll(string(text), "\n// ", " ")
		for _, name := range file.FindAllString(prose, -1) {
			beside, inside := filepath.Join(dir, name), filepath.Join(root, "internal", name)
			if !exists(beside) && !exists(inside) && !exists(filepath.Join(dir, "..", name)) {
				t.Errorf("doc.go of package %s: there is no %s", p.path, name)
			}
		}
		for _, m := range decision.FindAllStringSubmatch(prose, -1) {
			number := strings.Repeat("0", 4-len(m[1])) + m[1]
			if all, _ := filepath.Glob(filepath.Join(root, "docs/decisions", number+"-*.md")); len(all) != 1 {
				t.Errorf("doc.go of package %s: there is no decision %s", p.path, m[1])
			}
		}
	}
	if found < 3 {
		t.Errorf("only %d packages have a doc.go", found)
	}
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}
