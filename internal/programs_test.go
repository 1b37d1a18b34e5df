package internal

import (
	"go/ast"
	"slices"
	"testing"
)

// starters are the functions of Go that start a program.
var starters = map[string][]string{
	"exec":    {"Command", "CommandContext"},
	"os":      {"StartProcess"},
	"syscall": {"ForkExec", "StartProcess", "Exec"},
	"unix":    {"Exec"},
}

// startersOf are the files that may use starters. One is host.Program. Two start this program only
// for its namespaces and never let it run. Others are the init of virtual machines, where nothing
// else runs yet, and the process that it leaves behind to restart the agent. One is this program as
// a part of a rehearsal, where its user's shell has the user's terminal. One is replaced by a
// program that Xen's toolstack would start, and one by the lab, which is a part of Orrery.
var startersOf = []string{"internal/engine/confine/become.go", "internal/guest/boot/agent.go",
	"internal/guest/boot/init.go", "internal/host/program.go", "internal/rehearsal/again.go",
	"internal/image/rootfs/ids.go", "internal/host/doctor/namespaces.go", "internal/cli/lab.go"}

// TestPrograms: programs are started in only one place, which gives each a session of its own. A
// program in its caller's session could open the operator's terminal and type there.
func TestPrograms(t *testing.T) {
	eachFile(t, func(pkg, path string, f *ast.File) {
		if slices.Contains(startersOf, path) {
			return
		}
		ast.Inspect(f, func(n ast.Node) bool {
			if c, ok := n.(*ast.CompositeLit); ok && is(c.Type, "exec", "Cmd") {
				t.Errorf("%s: package %s makes an exec.Cmd: let host.Program make it", path, pkg)
			}
			for of, names := range starters {
				if e, ok := n.(*ast.SelectorExpr); ok && is(e, of, names...) {
					t.Errorf("%s: package %s calls %s.%s: call host.Program", path, pkg, of, e.Sel.Name)
				}
			}
			return true
		})
	})
}

// is reports whether an expression is one of some names of a package.
func is(e ast.Expr, pkg string, names ...string) bool {
	s, ok := e.(*ast.SelectorExpr)
	if !ok {
		return false
	}
	x, ok := s.X.(*ast.Ident)
	return ok && x.Name == pkg && slices.Contains(names, s.Sel.Name)
}
