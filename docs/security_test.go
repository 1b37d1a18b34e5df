package docs_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestPromises: each test that the page on security names is there, in the package that it names.
func TestPromises(t *testing.T) {
	_, promises, ok := strings.Cut(one(t, "docs/security.md").text, "## Promises and their tests")
	if !ok {
		t.Fatal("the page has no promises")
	}
	named := regexp.MustCompile("`([a-z0-9/]+)\\.((?:Test|Fuzz)[A-Za-z0-9]+)`").FindAllStringSubmatch(promises, -1)
	if len(named) < 50 {
		t.Fatalf("only %d tests are named", len(named))
	}
	for _, n := range named {
		dir := filepath.Join("../internal", n[1])
		switch n[1] {
		case "test":
			dir = "../test"
		case "internal":
			dir = "../internal"
		}
		if !hasTest(t, dir, n[2]) {
			t.Errorf("%s.%s is not there", n[1], n[2])
		}
	}
}

// hasTest reports whether a directory has a test of a name.
func hasTest(t *testing.T, dir, name string) bool {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(text), "\nfunc "+name+"(") {
			return true
		}
	}
	return false
}
