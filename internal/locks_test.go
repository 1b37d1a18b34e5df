package internal

import (
	"go/ast"
	"slices"
	"strings"
	"testing"
)

// lockFile is the only file that locks files.
const lockFile = "internal/host/lock.go"

// TestLocks: there is only one kind of lock, in package host. No goroutine blocks in a system call
// for it, because a context could not cancel that and the user would see no message.
func TestLocks(t *testing.T) {
	eachFile(t, func(_, path string, f *ast.File) {
		ast.Inspect(f, func(n ast.Node) bool {
			if s, ok := n.(*ast.SelectorExpr); ok && path != lockFile && locks(s) {
				t.Errorf("%s: %s.%s: take a host.Lock", path, name(s.X), s.Sel.Name)
			}
			if c, ok := n.(*ast.CallExpr); ok && path == lockFile && is(c.Fun, "unix", "Flock") && !mentions(c, "LOCK_NB") {
				t.Errorf("%s: a call of flock(2) without LOCK_NB ends with no context", path)
			}
			return true
		})
	})
}

// locks reports whether an expression refers to a kernel lock: flock(2) or one of fcntl(2).
func locks(s *ast.SelectorExpr) bool {
	if of := name(s.X); of != "unix" && of != "syscall" {
		return false
	}
	return slices.Contains([]string{"Flock", "FcntlFlock", "Flock_t"}, s.Sel.Name) ||
		strings.HasPrefix(s.Sel.Name, "LOCK_") ||
		strings.HasPrefix(s.Sel.Name, "F_SETLK") || strings.HasPrefix(s.Sel.Name, "F_OFD_SETLK")
}

// TestWaits: code waits for locks only through package waits. That package reports who holds the
// lock, and uses a context that can be cancelled.
func TestWaits(t *testing.T) {
	eachFile(t, func(pkg, path string, f *ast.File) {
		if pkg == "host/waits" {
			return
		}
		ast.Inspect(f, func(n ast.Node) bool {
			if polls(n) {
				t.Errorf("%s: a loop tries a lock again and again, in silence: call host.WaitLock or waits.For", path)
			}
			c, ok := n.(*ast.CallExpr)
			if !ok || len(c.Args) == 0 || !slices.Contains(waiters, strings.TrimPrefix(name(c.Fun), "host.")) {
				return true
			}
			if never, ok := c.Args[0].(*ast.CallExpr); ok && is(never.Fun, "context", "Background", "TODO", "WithoutCancel") {
				t.Errorf("%s: a wait for a lock that no context ends", path)
			}
			return true
		})
	})
}

// waiters are the functions that wait for a lock.
var waiters = []string{"WaitLock", "TakeLock", "TakeLockWithin", "lockFile", "waits.For"}

// polls reports whether a loop sleeps between attempts to get a lock.
func polls(n ast.Node) bool {
	loop, ok := n.(*ast.ForStmt)
	if !ok {
		return false
	}
	return (mentions(loop, "TryLock") || mentions(loop, "TakeLock") || mentions(loop, "Flock") ||
		mentions(loop, "Locked") || mentions(loop, "ErrHeld")) &&
		(mentions(loop, "Pause") || mentions(loop, "Sleep") || mentions(loop, "After"))
}

// mentions reports whether a name occurs in a node.
func mentions(in ast.Node, what string) (found bool) {
	ast.Inspect(in, func(n ast.Node) bool {
		s, ok := n.(*ast.Ident)
		found = found || ok && s.Name == what
		return !found
	})
	return found
}

// TestQuietNetworks: package network runs under the lock for all networks of the machine, which
// other sites wait for. Therefore it runs no programs, and prints nothing to readers that may
// block.
func TestQuietNetworks(t *testing.T) {
	loud := []string{"os/exec", "log/slog", "log", "io", "bufio"}
	eachFile(t, func(pkg, path string, f *ast.File) {
		if pkg != "network" {
			return
		}
		for _, i := range f.Imports {
			if name := strings.Trim(i.Path.Value, `"`); slices.Contains(loud, name) {
				t.Errorf("%s: imports %s; what is done under the lock of networks must wait for nobody", path, name)
			}
		}
		ast.Inspect(f, func(n ast.Node) bool {
			if c, ok := n.(*ast.CallExpr); ok && (is(c.Fun, "host", "Exec", "Output", "Program") ||
				is(c.Fun, "fmt", "Print", "Println", "Printf")) {
				t.Errorf("%s: calls what may wait for others, under the lock of networks", path)
			}
			return true
		})
	})
}
