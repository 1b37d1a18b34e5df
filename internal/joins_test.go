package internal

import (
	"go/ast"
	"slices"
	"testing"
)

// says are functions that only create or return an error, without side effects.
var says = []string{"errors.New", "fmt.Errorf", "os.NewSyscallError", "problem.New", "context.Cause", "ctx.Err"}

// TestJoins: at most one argument of errors.Join has side effects, because Go evaluates all
// arguments even if the first one is an error. It is a bug if the second action must not happen
// after the first has failed. (Once a previous copy was removed although the new one could not be
// put in its place.) An action that must happen in any case, such as cleaning up, has a statement
// of its own: "err = errors.Join(err, x())".
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

// innermost returns the first call of a chain, such as problem.New in problem.New(…).At(…).Try(…).
func innermost(call *ast.CallExpr) *ast.CallExpr {
	if s, ok := call.Fun.(*ast.SelectorExpr); ok {
		if inner, ok := s.X.(*ast.CallExpr); ok {
			return innermost(inner)
		}
	}
	return call
}

// name returns the called function as it is written.
func name(of ast.Expr) string {
	switch x := of.(type) {
	case *ast.Ident:
		return x.Name
	case *ast.SelectorExpr:
		return name(x.X) + "." + x.Sel.Name
	}
	return ""
}
