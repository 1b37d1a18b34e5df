package internal

import (
	"go/ast"
	"go/token"
	"regexp"
	"strconv"
	"testing"
)

// TestPatterns: all regular expressions are valid, and package pattern compiles them only when they
// are first used.
func TestPatterns(t *testing.T) {
	found := 0
	eachFile(t, func(_, path string, f *ast.File) {
		for _, d := range f.Decls {
			general, ok := d.(*ast.GenDecl)
			if !ok || general.Tok != token.VAR {
				continue
			}
			ast.Inspect(general, func(n ast.Node) bool {
				call, ok := n.(*ast.CallExpr)
				if !ok {
					return true
				}
				switch name(call.Fun) {
				case "regexp.MustCompile":
					t.Errorf("%s: a regular expression is compiled at the start of each verb: make it by pattern.New", path)
				case "pattern.New":
					found++
					if text, ok := call.Args[0].(*ast.BasicLit); ok {
						expression, err := strconv.Unquote(text.Value)
						if err != nil {
							t.Fatal(err)
						}
						if _, err := regexp.Compile(expression); err != nil {
							t.Errorf("%s: %v", path, err)
						}
					}
				}
				return true
			})
		}
	})
	if found < 20 {
		t.Errorf("only %d patterns were found", found)
	}
}
