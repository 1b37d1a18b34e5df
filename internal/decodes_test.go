package internal

import (
	"go/ast"
	"slices"
	"testing"
)

// peers are the packages that decode messages from other machines: from hosts, from guests and the
// programs that run them, and from programs in nodes.
var peers = []string{
	"transport/rpc", "apply/remote", "treesync", "treesync/chunks", "backup/ferry", "control/lab", "transport/transfer",
	"engine/kvm/qmp", "engine/kvm", "guest/agent",
	"lab/test", "lab/test/net", "lab/test/net/serve", "lab/test/disk", "lab/test/cpu", "lab/test/micro", "lab/test/mpi",
	"lab/test/capture", "lab/test/command", "lab/spead", "lab/bundle",
}

// TestDecodes: messages from peers are decoded by package jsonlimit, in memory proportional to
// their length.
func TestDecodes(t *testing.T) {
	found := map[string]bool{}
	eachFile(t, func(pkg, path string, f *ast.File) {
		if !slices.Contains(peers, pkg) {
			return
		}
		found[pkg] = true
		ast.Inspect(f, func(n ast.Node) bool {
			if s, ok := n.(*ast.SelectorExpr); ok && (name(s) == "json.Unmarshal" || name(s) == "json.NewDecoder") {
				t.Errorf("%s: %s of what a peer says: take jsonlimit.Unmarshal", path, name(s))
			}
			return true
		})
	})
	for _, pkg := range peers {
		if !found[pkg] {
			t.Errorf("there is no package %s", pkg)
		}
	}
}
