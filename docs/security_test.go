package docs_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// subjects are those of promises, in the order of the page.
var subjects = []string{"Trees that others write", "What others print and answer", "What nodes may do to the host",
	"Other users of the host", "Members", "Hooks", "Virtual machines", "Networks", "Files of strangers",
	"Data and time", "Other hosts"}

const regeneratePromises = "go test ./docs -run TestPromises -update"

var (
	promised = regexp.MustCompile(`(?s)^Promise \(([^)]*)\): (.*)\.$`)
	shownBy  = regexp.MustCompile(`^[a-z0-9/]+\.(?:Test|Fuzz)[A-Za-z0-9]+$`)
)

// A promise is a paragraph of the doc comment of a test:
//
//	Promise (SUBJECT): What cannot happen. With OTHER/PACKAGE.TestOfIt, test.TestOfIt.
type promise struct {
	subject, text string
	tests         []string // the first has the promise in its comment
}

// TestPromises: docs/promises.md has what the comments of tests promise, and each test that they name exists.
func TestPromises(t *testing.T) {
	all, tests := promises(t)
	var b strings.Builder
	fmt.Fprintf(&b, "# Promises and their tests\n\nWhat [security](security.md) promises, and the tests that show it. "+
		"Each test is in the named package (below\n`internal/`, or `test/`), and fails without the protection that it is "+
		"about. Integration tests need root: `make test`.\nThis page is generated from the comments of the tests: "+
		"change these, then run `%s`.\n", regeneratePromises)
	count := 0
	for _, subject := range subjects {
		fmt.Fprintf(&b, "\n## %s\n\n| promise | tests |\n|---|---|\n", subject)
		for _, p := range all {
			if p.subject == subject {
				fmt.Fprintf(&b, "| %s | `%s` |\n", strings.ReplaceAll(p.text, "|", `\|`), strings.Join(p.tests, "`, `"))
				count++
			}
		}
	}
	for _, p := range all {
		if !slices.Contains(subjects, p.subject) {
			t.Errorf("%s: the promise has the subject %q, which is none of %q", p.tests[0], p.subject, subjects)
		}
		for _, name := range p.tests {
			if !tests[name] {
				t.Errorf("%s names %s, which is not there", p.tests[0], name)
			}
		}
	}
	if count < 100 {
		t.Errorf("only %d promises were found", count)
	}
	path := filepath.Join(root, "docs/promises.md")
	if *update && !t.Failed() {
		if err := os.WriteFile(path, []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if text, err := os.ReadFile(path); err != nil || string(text) != b.String() {
		t.Errorf("docs/promises.md is not what the comments of the tests say: %s (%v)", regeneratePromises, err)
	}
}

// promises returns the promises in the order of the packages, files and tests that have them, and
// the names of all tests.
func promises(t *testing.T) ([]promise, map[string]bool) {
	t.Helper()
	var all []promise
	tests := map[string]bool{}
	for _, top := range []string{"internal", "test"} {
		err := filepath.WalkDir(filepath.Join(root, top), func(path string, _ fs.DirEntry, err error) error {
			if err != nil || !strings.HasSuffix(path, "_test.go") {
				return err
			}
			file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ParseComments|parser.SkipObjectResolution)
			if err != nil {
				return err
			}
			pkg, _ := filepath.Rel(root, filepath.Dir(path))
			pkg = strings.TrimPrefix(filepath.ToSlash(pkg), "internal/")
			for _, d := range file.Decls {
				if f, ok := d.(*ast.FuncDecl); ok && f.Recv == nil {
					name := pkg + "." + f.Name.Name
					tests[name] = true
					all = append(all, promisesOf(t, name, f.Doc.Text())...)
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return all, tests
}

// promisesOf returns the promises in the comment of a test.
func promisesOf(t *testing.T, name, comment string) []promise {
	t.Helper()
	var all []promise
	for paragraph := range strings.SplitSeq(comment, "\n\n") {
		paragraph = strings.Join(strings.Fields(paragraph), " ")
		m := promised.FindStringSubmatch(paragraph)
		if m == nil {
			if strings.HasPrefix(paragraph, "Promise") {
				t.Errorf("%s: write Promise (SUBJECT): …, not %q", name, paragraph)
			}
			continue
		}
		p := promise{subject: m[1], text: m[2], tests: []string{name}}
		if text, others, ok := strings.Cut(p.text, ". With "); ok {
			p.text, p.tests = text, append(p.tests, strings.Split(others, ", ")...)
			for _, other := range p.tests {
				if !shownBy.MatchString(other) {
					t.Errorf("%s: %q is no test of a package", name, other)
				}
			}
		}
		all = append(all, p)
	}
	return all
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
