package internal

import (
	"bytes"
	"go/ast"
	"os"
	"path"
	"strconv"
	"strings"
	"testing"
)

const (
	maxExported = 60  // exported names of a package, all of which its users must know
	minLines    = 300 // of a package with a single importer, which could contain it as files
)

// vocabularies are packages that export more names. Other packages must be split when they grow.
var vocabularies = map[string]int{
	"site":    130, // what a site file can declare; it is the specification
	"observe": 80,  // what hosts can report
	"host":    100,
	"apply":   75,
	"plan":    62,
}

// alone begins the reason, in the comment of a short package with a single importer, why it is not a
// file of that package.
const alone = "It is a package of its own because "

// TestSizes: a package is neither too large to understand nor too small to exist.
func TestSizes(t *testing.T) {
	exported, lines, importers := map[string]map[string]bool{}, map[string]int{}, map[string]map[string]bool{}
	reasons := map[string]bool{}
	imported := func(by string, f *ast.File) {
		for _, i := range f.Imports {
			name, _ := strconv.Unquote(i.Path.Value)
			if other, ours := strings.CutPrefix(name, "orrery/internal/"); ours && other != by {
				if importers[other] == nil {
					importers[other] = map[string]bool{}
				}
				importers[other][by] = true
			}
		}
	}
	eachFileOf(t, "../cmd", func(at string, f *ast.File) { imported(path.Dir(at), f) })
	eachFile(t, func(pkg, at string, f *ast.File) {
		if exported[pkg] == nil {
			exported[pkg] = map[string]bool{}
		}
		for _, d := range f.Decls {
			for _, name := range declared(d) {
				if ast.IsExported(name) {
					exported[pkg][name] = true
				}
			}
		}
		imported(pkg, f)
		text, err := os.ReadFile(strings.TrimPrefix(at, "internal/"))
		if err != nil {
			t.Fatal(err)
		}
		if bytes.Contains(bytes.ReplaceAll(text, []byte("\n// "), []byte(" ")), []byte(alone)) {
			reasons[pkg] = true
		}
		if path.Base(at) == "doc.go" {
			return
		}
		lines[pkg] += bytes.Count(text, []byte("\n"))
	})
	if len(lines) < 100 {
		t.Errorf("only %d packages were found", len(lines))
	}
	for pkg, names := range exported {
		if most := max(vocabularies[pkg], maxExported); len(names) > most {
			t.Errorf("package %s exports %d names; at most %d are clear: part it by what changes together",
				pkg, len(names), most)
		}
		small := len(importers[pkg]) <= 1 && lines[pkg] < minLines
		if small && !reasons[pkg] {
			t.Errorf("package %s has %d lines and one importer: make it files of that, or write in its comment: %s…",
				pkg, lines[pkg], alone)
		}
		if !small && reasons[pkg] {
			t.Errorf("package %s is not so small, or others import it: remove the reason from its comment", pkg)
		}
	}
}

// declared returns the names in a declaration, except those of methods.
func declared(d ast.Decl) (names []string) {
	switch d := d.(type) {
	case *ast.FuncDecl:
		if d.Recv == nil {
			names = append(names, d.Name.Name)
		}
	case *ast.GenDecl:
		for _, spec := range d.Specs {
			switch spec := spec.(type) {
			case *ast.TypeSpec:
				names = append(names, spec.Name.Name)
			case *ast.ValueSpec:
				for _, name := range spec.Names {
					names = append(names, name.Name)
				}
			}
		}
	}
	return names
}
