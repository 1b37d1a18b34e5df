package internal

import (
	"go/ast"
	"go/token"
	"path/filepath"
	"strings"
	"testing"
)

// ofNodes are names inside the directory of a node, and suffixes of temporary directories next to
// it.
var ofNodes = []string{"node.json", "private/upper", "private/work", "-former", "rootfs/"}

// TestNodeDirectories: only package nodedir knows the layout of a node's directory on a host.
// Engines, snapshots, backups and operations use that package.
func TestNodeDirectories(t *testing.T) {
	eachFile(t, func(pkg, path string, f *ast.File) {
		if pkg == "engine/nodedir" || pkg == "engine/enginetest" { // enginetest breaks a record on purpose
			return
		}
		ast.Inspect(f, func(n ast.Node) bool {
			switch x := n.(type) {
			case *ast.ImportSpec:
				return false
			case *ast.BasicLit:
				for _, name := range ofNodes {
					if x.Kind == token.STRING && strings.Contains(x.Value, name) {
						t.Errorf("%s: %s names a path in a node's directory, which is for package engine/nodedir to know", path, x.Value)
					}
				}
			case *ast.CallExpr:
				s, ok := x.Fun.(*ast.SelectorExpr)
				if ok && s.Sel.Name == "Nodes" && strings.HasSuffix(strings.ToLower(name(s.X)), "dirs") &&
					filepath.Dir(path) != "internal/host" {
					t.Errorf("%s: Dirs.Nodes is for packages host and engine/nodedir: name the node instead", path)
				}
			}
			return true
		})
	})
}
