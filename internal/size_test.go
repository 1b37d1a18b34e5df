package internal

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A package of more files or lines than these holds several things: who looks for one of them has to know all.
const (
	mostFiles = 40
	mostLines = 3500
)

// TestSize counts the files and lines of each package, without tests and doc.go, which has no code.
func TestSize(t *testing.T) {
	files, lines := map[string]int{}, map[string]int{}
	paths, err := filepath.Glob("*/*.go")
	for _, deeper := range []string{"*/*/*.go", "*/*/*/*.go", "*/*/*/*/*.go"} {
		more, bad := filepath.Glob(deeper)
		if paths = append(paths, more...); bad != nil {
			err = bad
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range paths {
		if strings.HasSuffix(path, "_test.go") || filepath.Base(path) == "doc.go" {
			continue
		}
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		files[filepath.Dir(path)]++
		lines[filepath.Dir(path)] += bytes.Count(text, []byte("\n"))
	}
	if len(files) < 50 {
		t.Errorf("only %d packages were found", len(files))
	}
	for pkg := range files {
		if lines[pkg] > mostLines || files[pkg] > mostFiles {
			t.Errorf("package %s has %d files and %d lines; at most %d and %d are clear: part it by what changes together", pkg, files[pkg], lines[pkg], mostFiles, mostLines)
		}
	}
}
