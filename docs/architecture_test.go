package docs_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestWhereToStart: the files and folders that a newcomer is told to open first are there.
func TestWhereToStart(t *testing.T) {
	p := one(t, "CONTRIBUTING.md")
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
}
