package internal

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"strings"
	"testing"
)

// TestWords checks that no doc comment begins "NAME gives". This wording says neither what a
// function returns nor what it does.
func TestWords(t *testing.T) {
	found := 0
	fset := token.NewFileSet()
	refuse := func(doc *ast.CommentGroup) {
		words := strings.Fields(doc.Text())
		if len(words) == 0 {
			return
		}
		found++
		switch words[0] {
		case "A", "An", "The":
			words = words[1:]
		}
		if len(words) > 1 && words[1] == "gives" {
			at := fset.Position(doc.Pos())
			t.Errorf("%s:%d: a doc comment begins %q: say what it returns or does (CONTRIBUTING.md)",
				filepath.Join("internal", at.Filename), at.Line, words[0]+" gives")
		}
	}
	eachSource(t, fset, func(f *ast.File) { eachDoc(f, refuse) })
	if found < 5000 {
		t.Errorf("only %d doc comments were found", found)
	}
}

// eachSource calls do for all Go files of the repository, tests included.
func eachSource(t *testing.T, fset *token.FileSet, do func(f *ast.File)) {
	t.Helper()
	for _, top := range []string{".", "../cmd", "../test", "../bench", "../docs"} {
		err := filepath.WalkDir(top, func(path string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() || !strings.HasSuffix(path, ".go") {
				return err
			}
			f, err := parser.ParseFile(fset, path, nil, parser.ParseComments|parser.SkipObjectResolution)
			if err == nil {
				do(f)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}

// eachDoc calls do for the doc comments of all declarations in a file: functions, types with their
// fields and methods, variables and constants.
func eachDoc(f *ast.File, do func(doc *ast.CommentGroup)) {
	ast.Inspect(f, func(n ast.Node) bool {
		switch d := n.(type) {
		case *ast.FuncDecl:
			do(d.Doc)
		case *ast.GenDecl:
			do(d.Doc)
		case *ast.TypeSpec:
			do(d.Doc)
		case *ast.ValueSpec:
			do(d.Doc)
		case *ast.Field:
			do(d.Doc)
		}
		return true
	})
}
