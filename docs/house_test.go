package docs_test

import (
	"cmp"
	"fmt"
	"go/ast"
	"go/doc"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// A floor of the house is a few rooms: folders of internal, or single packages that stand lower
// than their folder.
type floor struct {
	name  string
	rooms []string
}

// floors are those of the house, from the top. A room imports only from its own floor and from floors below it.
var floors = []floor{
	{"faces", []string{"cli"}},
	{"operations", []string{"control", "member"}},
	{"the lab", []string{"lab"}},
	{"carrying out", []string{"apply"}},
	{"keeping", []string{"snapshot", "backup", "drift"}},
	{"making nodes", []string{"engine"}},
	{"what a host has of a site", []string{"image", "role", "network", "volume", "secret", "journal", "guest"}},
	{"between machines", []string{"transport", "treesync"}},
	{"this machine", []string{"host", "rehearsal"}},
	{"deciding", []string{"plan", "observe"}},
	{"the site", []string{"site"}},
	{"the ground", []string{"problem", "strict", "text", "tree", "transport/frame", "host/waits", "guest/boot",
		"image/sums"}},
}

// withoutComment are the rooms that have packages but are none themselves, with what they are for.
var withoutComment = map[string]string{
	"guest": "is what runs in a virtual machine",
	"lab":   "measures what virtualization costs",
	"text":  "words for people, and text that others wrote",

	"transport": "carries calls and data between machines",
}

const (
	regenerate = "go test ./docs -run 'TestHouse|TestPackages' -update"
	maxPurpose = 80 // columns beside the name of a room

	maxArchitecture = 1500 // words
)

// A goPackage is one below internal.
type goPackage struct {
	path    string // from internal
	purpose string // the first sentence of its comment, without "Package NAME"
	imports []string
}

// TestHouse: the picture in architecture.md has every room, what its package comment says, and no
// import that goes up.
func TestHouse(t *testing.T) {
	all := goPackages(t)
	level := map[string]int{}
	for i, f := range floors {
		for _, room := range f.rooms {
			level[room] = i
		}
	}
	for _, p := range all {
		from, ok := level[roomOf(p.path)]
		if !ok {
			t.Errorf("package %s is in no room: add its folder to floors in docs/house_test.go, then %s",
				p.path, regenerate)
			continue
		}
		for _, other := range p.imports {
			if to, ok := level[roomOf(other)]; ok && to < from {
				t.Errorf("package %s (%s) imports %s, which is above it (%s)",
					p.path, floors[from].name, other, floors[to].name)
			}
		}
	}
	same(t, "docs/architecture.md", within(t, one(t, "docs/architecture.md").text, "house", drawHouse(t, all)))
}

// drawHouse draws the floors with their rooms, the purpose of each beside it.
func drawHouse(t *testing.T, all []goPackage) string {
	t.Helper()
	purposes := map[string]string{}
	for _, p := range all {
		purposes[p.path] = p.purpose
	}
	const names, width = 12, 12 + maxPurpose + 4
	line := func(left, title, right string) string {
		return left + title + strings.Repeat("─", width-len([]rune(title))) + right + "\n"
	}
	var b strings.Builder
	for i, f := range floors {
		left, right := "├", "┤"
		if i == 0 {
			left, right = "┌", "┐"
		}
		b.WriteString(line(left, "─ "+f.name+" ", right))
		for _, room := range f.rooms {
			purpose := cmp.Or(purposes[room], withoutComment[room])
			purpose, _, _ = strings.Cut(purpose, ":")
			if purpose == "" || len([]rune(purpose)) > maxPurpose {
				t.Errorf("package %s: the first sentence of its comment must have 1 to %d characters before a colon: %q",
					room, maxPurpose, purpose)
			}
			fmt.Fprintf(&b, "│  %-*s%-*s│\n", names, room, width-names-2, purpose)
		}
	}
	b.WriteString(line("└", "", "┘"))
	return b.String()
}

// TestPackages: docs/packages.md has what the comment of each package says.
func TestPackages(t *testing.T) {
	var b strings.Builder
	fmt.Fprintf(&b, "# Packages\n\nThe first sentence of the comment of each package below `internal/`, "+
		"floor by floor as in the picture in [architecture](architecture.md#the-house).\n"+
		"`go doc ./internal/NAME` shows the rest. "+
		"This page is generated: change the comments, then run `%s`.\n", regenerate)
	all := goPackages(t)
	for _, f := range floors {
		fmt.Fprintf(&b, "\n## %s\n\n| package | purpose |\n|---|---|\n", strings.ToUpper(f.name[:1])+f.name[1:])
		for _, room := range f.rooms {
			for _, p := range all {
				if roomOf(p.path) == room {
					purpose := strings.ReplaceAll(p.purpose, "|", `\|`)
					fmt.Fprintf(&b, "| [`%s`](../internal/%s) | %s |\n", p.path, p.path, purpose)
				}
			}
		}
	}
	same(t, "docs/packages.md", b.String())
}

// TestStory: each function in the story of up exists, and the package of one that it is indented
// under names it.
func TestStory(t *testing.T) {
	_, rest, ok := strings.Cut(one(t, "docs/architecture.md").text, "<!-- story:")
	if !ok {
		t.Fatal("there is no story")
	}
	_, rest, _ = strings.Cut(rest, "```text\n")
	story, _, _ := strings.Cut(rest, "```")
	line := regexp.MustCompile(`^([ │├└]*)([\w/]+)\.(\w+) `)
	declared, used := map[string]map[string]bool{}, map[string]map[string]bool{}
	var callers []string // the packages of the functions above, from the first
	steps := 0
	for text := range strings.Lines(story) {
		m := line.FindStringSubmatch(text)
		if m == nil {
			t.Errorf("this is no step of the story: %s", text)
			continue
		}
		depth, pkg, name := len([]rune(m[1]))/2, m[2], m[3]
		if declared[pkg] == nil {
			declared[pkg], used[pkg] = words(t, pkg)
		}
		if !declared[pkg][name] {
			t.Errorf("package %s has no function %s", pkg, name)
		}
		callers = callers[:min(depth, len(callers))]
		if depth > 0 && !slices.ContainsFunc(callers, func(caller string) bool { return used[caller][name] }) {
			t.Errorf("none of %s calls %s.%s", callers, pkg, name)
		}
		callers = append(callers, pkg)
		steps++
	}
	if steps < 20 {
		t.Errorf("the story has only %d steps", steps)
	}
}

// TestShortArchitecture: beside its pictures, the page stays short enough to be read at once.
func TestShortArchitecture(t *testing.T) {
	if words := len(strings.Fields(prose(one(t, "docs/architecture.md")))); words > maxArchitecture {
		t.Errorf("docs/architecture.md has %d words beside its pictures; at most %d: how a package works belongs in its doc.go",
			words, maxArchitecture)
	}
}

// words returns the functions and methods that a package declares, and the names that its functions use.
func words(t *testing.T, pkg string) (declared, used map[string]bool) {
	t.Helper()
	dir := filepath.Join(root, "internal", pkg)
	if strings.HasPrefix(pkg, "cmd/") {
		dir = filepath.Join(root, pkg)
	}
	paths, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil || len(paths) == 0 {
		t.Fatalf("there is no package %s (%v)", pkg, err)
	}
	declared, used = map[string]bool{}, map[string]bool{}
	for _, path := range paths {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		f, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(f, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.FuncDecl:
				declared[n.Name.Name] = true
			case *ast.InterfaceType:
				for _, method := range n.Methods.List {
					for _, name := range method.Names {
						declared[name.Name] = true
					}
				}
			case *ast.SelectorExpr:
				used[n.Sel.Name] = true
			case *ast.CallExpr:
				if name, ok := n.Fun.(*ast.Ident); ok {
					used[name.Name] = true
				}
			}
			return true
		})
	}
	return declared, used
}

// roomOf returns the room that a package is in, or "" if it is in none.
func roomOf(pkg string) string {
	for p := pkg; p != "."; p = filepath.Dir(p) {
		if slices.ContainsFunc(floors, func(f floor) bool { return slices.Contains(f.rooms, p) }) {
			return p
		}
	}
	return ""
}

// goPackages returns the packages below internal, by path.
func goPackages(t *testing.T) []goPackage {
	t.Helper()
	found := map[string]*goPackage{}
	internal := filepath.Join(root, "internal")
	fset := token.NewFileSet()
	err := filepath.WalkDir(internal, func(path string, _ fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		dir, err := filepath.Rel(internal, filepath.Dir(path))
		if err != nil {
			return err
		}
		f, err := parser.ParseFile(fset, path, nil, parser.ImportsOnly|parser.ParseComments)
		if err != nil {
			return err
		}
		p, ok := found[dir]
		if !ok {
			p = &goPackage{path: dir}
			found[dir] = p
		}
		if text := f.Doc.Text(); strings.HasPrefix(text, "Package ") {
			sentence := new(doc.Package).Synopsis(text)
			p.purpose = strings.TrimRight(strings.TrimPrefix(sentence, "Package "+f.Name.Name+" "), ".:")
		}
		for _, i := range f.Imports {
			name, err := strconv.Unquote(i.Path.Value)
			if err != nil {
				return err
			}
			if other, ok := strings.CutPrefix(name, "orrery/internal/"); ok {
				p.imports = append(p.imports, other)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	var all []goPackage
	for _, p := range found {
		if p.purpose == "" {
			t.Errorf("package %s has no comment that begins with Package", p.path)
		}
		all = append(all, *p)
	}
	if len(all) < 50 {
		t.Fatalf("only %d packages were found", len(all))
	}
	slices.SortFunc(all, func(a, b goPackage) int { return strings.Compare(a.path, b.path) })
	return all
}

// within returns a page with new text in the block behind a mark.
func within(t *testing.T, page, mark, text string) string {
	t.Helper()
	block := regexp.MustCompile("(?s)(<!-- " + mark + ":[^\n]*-->\n```text\n).*?```\n")
	if !block.MatchString(page) {
		t.Fatalf("there is no block %s", mark)
	}
	return block.ReplaceAllString(page, "${1}"+text+"```\n")
}

// same compares a page with what it should be, or writes it with -update.
func same(t *testing.T, path, want string) {
	t.Helper()
	path = filepath.Join(root, path)
	if *update && !t.Failed() {
		if err := os.WriteFile(path, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if text, err := os.ReadFile(path); err != nil || string(text) != want {
		t.Errorf("%s is not what the package comments and imports say: %s (%v)", path, regenerate, err)
	}
}
