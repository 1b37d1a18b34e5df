package docs_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"orrery/internal/problem"
)

// root is the directory of the repository.
const root = ".."

// A page is a document.
type page struct {
	path   string // from the root
	text   string
	blocks []block
}

// A block is fenced or indented text that stands for itself.
type block struct {
	line  int
	info  string // what stands behind the fence, such as "toml fragment"
	lines []string
}

func (b block) text() string { return strings.Join(b.lines, "\n") + "\n" }

// pages reads all documents that are for people.
func pages(t *testing.T) []*page {
	t.Helper()
	var all []*page
	for _, pattern := range []string{"*.md", "docs/*.md", "docs/*/*.md", "changelog/*.md", "changelog/*/*.md",
		"examples/*/*.md"} {
		found, err := filepath.Glob(filepath.Join(root, pattern))
		if err != nil {
			t.Fatal(err)
		}
		for _, path := range found {
			text, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			name, _ := filepath.Rel(root, path)
			all = append(all, &page{name, string(text), blocks(string(text))})
		}
	}
	if len(all) < 10 {
		t.Fatalf("%d documents are not all", len(all))
	}
	return all
}

func one(t *testing.T, path string) *page {
	t.Helper()
	for _, p := range pages(t) {
		if p.path == path {
			return p
		}
	}
	t.Fatalf("there is no %s", path)
	return nil
}

// blocks cuts the blocks out of a document.
func blocks(text string) []block {
	var all []block
	var fenced *block
	indented := false
	for n, line := range strings.Split(text, "\n") {
		info, fence := strings.CutPrefix(line, "```")
		switch {
		case fence && fenced == nil:
			fenced = &block{line: n + 1, info: info}
		case fence:
			all = append(all, *fenced)
			fenced = nil
		case fenced != nil:
			fenced.lines = append(fenced.lines, line)
		case strings.HasPrefix(line, "    ") && strings.TrimSpace(line) != "":
			if !indented {
				all = append(all, block{line: n + 1})
			}
			last := &all[len(all)-1]
			last.lines = append(last.lines, line[4:])
			indented = true
			continue
		}
		indented = false
	}
	return all
}

// prose returns a document without its blocks, so that what looks like a link in there is none.
func prose(p *page) string {
	var out []string
	inside := false
	for line := range strings.Lines(p.text) {
		if strings.HasPrefix(line, "```") {
			inside = !inside
		} else if !inside && !strings.HasPrefix(line, "    ") {
			out = append(out, line)
		}
	}
	return strings.Join(out, "")
}

// table returns the cells of the first table whose header begins with some word.
func table(t *testing.T, p *page, header string) [][]string {
	t.Helper()
	var rows [][]string
	inside := false
	for line := range strings.Lines(p.text) {
		line = strings.TrimSpace(line)
		if strings.HasPrefix(line, "| "+header+" |") {
			inside = true
			continue
		}
		if !inside {
			continue
		}
		if !strings.HasPrefix(line, "|") {
			break
		}
		var row []string
		for _, cell := range strings.Split(strings.Trim(line, "|"), "|") {
			row = append(row, strings.TrimSpace(cell))
		}
		if !strings.HasPrefix(row[0], "---") {
			rows = append(rows, row)
		}
	}
	if len(rows) == 0 {
		t.Fatalf("%s has no table that begins with %q", p.path, header)
	}
	return rows
}

// TestExitStatus compares the table with the constants of package problem.
func TestExitStatus(t *testing.T) {
	kinds := kindsOfProblems(t)
	kinds["0"] = ""
	kinds[strconv.Itoa(problem.FailedNodes+1)+"–"+strconv.Itoa(problem.FailedNodes+100)] = ""
	seen := map[string]bool{}
	for _, row := range table(t, one(t, "docs/commands.md"), "status | kind") {
		name, known := kinds[row[0]]
		switch {
		case !known:
			t.Errorf("exit status %s is in the table, but not in package problem", row[0])
		case name != row[1]:
			t.Errorf("exit status %s is called %q in the table and %q in package problem", row[0], row[1], name)
		case seen[row[0]]:
			t.Errorf("exit status %s is twice in the table", row[0])
		}
		seen[row[0]] = true
	}
	for status, name := range kinds {
		if !seen[status] {
			t.Errorf("exit status %s (%s) is not in the table", status, name)
		}
	}
}

// kindsOfProblems reads the constants of type Kind, as status → name.
func kindsOfProblems(t *testing.T) map[string]string {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), filepath.Join(root, "internal/problem/problem.go"), nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	kinds := map[string]string{}
	ast.Inspect(file, func(n ast.Node) bool {
		v, ok := n.(*ast.ValueSpec)
		if !ok || len(v.Values) != 1 {
			return true
		}
		kind, isKind := v.Type.(*ast.Ident)
		value, isNumber := v.Values[0].(*ast.BasicLit)
		if isKind && kind.Name == "Kind" && isNumber {
			kinds[value.Value] = v.Names[0].Name
		}
		return true
	})
	if len(kinds) < 5 {
		t.Fatalf("found %d kinds of problems", len(kinds))
	}
	return kinds
}

var link = regexp.MustCompile(`\]\(([^)\s]*)\)`)

// TestLinks sees that links within the repository lead somewhere, to headings too.
func TestLinks(t *testing.T) {
	for _, p := range pages(t) {
		for _, m := range link.FindAllStringSubmatch(prose(p), -1) {
			target, heading, _ := strings.Cut(m[1], "#")
			if strings.Contains(target, "://") {
				continue
			}
			path := filepath.Join(root, filepath.Dir(p.path), target)
			if target == "" {
				path = filepath.Join(root, p.path)
			}
			text, err := os.ReadFile(path)
			if err != nil {
				if info, dir := os.Stat(path); dir != nil || !info.IsDir() {
					t.Errorf("%s: nothing is at %s", p.path, m[1])
				}
				continue
			}
			if heading != "" && !headings(string(text))[heading] {
				t.Errorf("%s: %s has no such heading: %s", p.path, target, heading)
			}
		}
	}
}

// headings returns the anchors of a document as GitHub makes them.
func headings(text string) map[string]bool {
	all := map[string]bool{}
	for line := range strings.Lines(text) {
		if !strings.HasPrefix(line, "#") {
			continue
		}
		title := strings.ToLower(strings.TrimSpace(strings.TrimLeft(line, "#")))
		anchor := regexp.MustCompile(`[^\p{L}\p{N} _-]`).ReplaceAllString(title, "")
		all[strings.ReplaceAll(anchor, " ", "-")] = true
	}
	return all
}

// TestDependencies sees that every module that the code imports, and every package that make
// installs, is accounted for.
func TestDependencies(t *testing.T) {
	text, listed := one(t, "docs/dependencies.md").text, one(t, "CONTRIBUTING.md").text
	modules, err := os.ReadFile(filepath.Join(root, "go.mod"))
	if err != nil {
		t.Fatal(err)
	}
	imported := imports(t)
	for _, m := range regexp.MustCompile(`(?m)^\s+(\S+) v\S+`).FindAllStringSubmatch(string(modules), -1) {
		for path := range imported {
			if (path == m[1] || strings.HasPrefix(path, m[1]+"/")) &&
				!strings.Contains(listed, "`"+strings.TrimSuffix(m[1], "/v2")) &&
				!strings.Contains(listed, "`"+m[1]+"`") {
				t.Errorf("CONTRIBUTING.md says nothing of %s, which is imported as %s", m[1], path)
				break
			}
		}
	}
	script, err := os.ReadFile(filepath.Join(root, "packaging/packages"))
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range regexp.MustCompile(`packages="([^"]+)"`).FindAllStringSubmatch(string(script), -1) {
		for _, name := range strings.Fields(m[1]) {
			if !strings.Contains(text, name) {
				t.Errorf("docs/dependencies.md says nothing of the package %s", name)
			}
		}
	}
}

// imports returns the import paths of all code.
func imports(t *testing.T) map[string]bool {
	t.Helper()
	all := map[string]bool{}
	for _, dir := range []string{"cmd", "internal", "test", "bench", "docs"} {
		err := filepath.WalkDir(filepath.Join(root, dir), func(path string, _ os.DirEntry, err error) error {
			if err != nil || !strings.HasSuffix(path, ".go") {
				return err
			}
			file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ImportsOnly)
			if err != nil {
				return err
			}
			for _, i := range file.Imports {
				name, _ := strconv.Unquote(i.Path.Value)
				all[name] = true
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return all
}

var fragment = regexp.MustCompile(`^(new|change|fix|security)-[a-z0-9-]+\.md$`)

// TestChangelog sees that fragments, also those of released versions, have the names and the form
// that changelog/README.md asks for. No unreleased fragments are needed: git keeps no empty
// directory.
func TestChangelog(t *testing.T) {
	for _, p := range pages(t) {
		dir, name := filepath.Split(p.path)
		if !strings.HasPrefix(dir, "changelog/") || dir == "changelog/" {
			continue
		}
		if !fragment.MatchString(name) {
			t.Errorf("%s: the name does not say of what kind it is", p.path)
		}
		if first, _, _ := strings.Cut(p.text, "\n"); !strings.HasSuffix(first, ".") {
			t.Errorf("%s: the first line is no sentence", p.path)
		}
	}
}
