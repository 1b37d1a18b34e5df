package internal

import (
	"go/ast"
	"slices"
	"testing"
)

// says are calls that only make an error and do nothing.
var says = []string{"errors.New", "fmt.Errorf", "os.NewSyscallError", "problem.New", "context.Cause", "ctx.Err"}

// TestJoins: errors.Join does one thing at most, because Go does all that is among its arguments,
// whatever becomes of the first. Where the second must not be done when the first has failed, that
// is an error (a former copy was removed although the new one could not be put in its place); where
// it is to be done all the same, as cleaning up is, "err = errors.Join(err, x())" says so.
func TestJoins(t *testing.T) {
	eachFile(t, func(_, path string, f *ast.File) {
		ast.Inspect(f, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok || name(call.Fun) != "errors.Join" {
				return true
			}
			does := 0
			for _, argument := range call.Args {
				if inner, ok := argument.(*ast.CallExpr); ok && !slices.Contains(says, name(innermost(inner).Fun)) {
					does++
				}
			}
			if does > 1 {
				t.Errorf("%s: an errors.Join whose arguments do %d things: the second is done although the first has failed",
					path, does)
			}
			return true
		})
	})
}

// innermost returns the first call of a chain, as problem.New is of problem.New(…).At(…).Try(…).
func innermost(call *ast.CallExpr) *ast.CallExpr {
	if s, ok := call.Fun.(*ast.SelectorExpr); ok {
		if inner, ok := s.X.(*ast.CallExpr); ok {
			return innermost(inner)
		}
	}
	return call
}

// name returns what is called, as it is written.
func name(of ast.Expr) string {
	switch x := of.(type) {
	case *ast.Ident:
		return x.Name
	case *ast.SelectorExpr:
		return name(x.X) + "." + x.Sel.Name
	}
	return ""
}
