package internal

import (
	"go/ast"
	"strings"
	"testing"
)

// TestLocks: there is one kind of lock, in package host.
func TestLocks(t *testing.T) {
	eachFile(t, func(_, path string, f *ast.File) {
		if path == "internal/host/lock.go" {
			return
		}
		ast.Inspect(f, func(n ast.Node) bool {
			if s, ok := n.(*ast.SelectorExpr); ok && name(s.X) == "unix" && (s.Sel.Name == "Flock" || strings.HasPrefix(s.Sel.Name, "LOCK_")) {
				t.Errorf("%s: unix.%s: take a host.Lock", path, s.Sel.Name)
			}
			return true
		})
	})
}
