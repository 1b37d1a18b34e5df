package internal

import (
	"go/ast"
	"go/token"
	"regexp"
	"slices"
	"testing"
)

// noNouns are words that do not describe what a variable holds.
var noNouns = []string{"is", "was", "has", "had", "are", "were", "there", "so", "able"}

// privateWords matches parts of names for which there are usual words: limits are called maxX,
// timeouts xTimeout.
var privateWords = regexp.MustCompile(`^[mM]ost[A-Z]|[pP]atience`)

// TestNames reports variables that are named by a verb or an adverb, and unusual words for limits.
func TestNames(t *testing.T) {
	names := 0
	fset := token.NewFileSet()
	check := func(id *ast.Ident, function bool) {
		names++
		at := fset.Position(id.Pos())
		if !function && slices.Contains(noNouns, id.Name) {
			t.Errorf("%s:%d: a variable is called %q: name it by what it holds", at.Filename, at.Line, id.Name)
		}
		if privateWords.MatchString(id.Name) {
			t.Errorf("%s:%d: %s: a limit is called maxX, a time to wait xTimeout", at.Filename, at.Line, id.Name)
		}
	}
	eachSource(t, fset, func(f *ast.File) { eachName(f, check) })
	if names < 50_000 {
		t.Errorf("only %d names were found", names)
	}
}

// eachName calls do for the names of all variables, constants, functions and types that a file
// declares.
func eachName(f *ast.File, do func(id *ast.Ident, function bool)) {
	all := func(some []ast.Expr) {
		for _, e := range some {
			if id, ok := e.(*ast.Ident); ok {
				do(id, false)
			}
		}
	}
	ast.Inspect(f, func(n ast.Node) bool {
		switch d := n.(type) {
		case *ast.FuncDecl:
			do(d.Name, true)
		case *ast.FuncType:
			for _, list := range []*ast.FieldList{d.Params, d.Results} {
				if list == nil {
					continue
				}
				for _, field := range list.List {
					for _, id := range field.Names {
						do(id, false)
					}
				}
			}
		case *ast.TypeSpec:
			do(d.Name, false)
		case *ast.ValueSpec:
			for _, id := range d.Names {
				do(id, false)
			}
		case *ast.AssignStmt:
			if d.Tok == token.DEFINE {
				all(d.Lhs)
			}
		case *ast.RangeStmt:
			if d.Tok == token.DEFINE {
				all([]ast.Expr{d.Key, d.Value})
			}
		}
		return true
	})
}
