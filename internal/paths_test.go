package internal

import (
	"fmt"
	"go/ast"
	"go/token"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// reaching are functions that take a path and follow it, even through symbolic links that another
// user created.
var reaching = map[string][]string{
	"os": {
		"Open", "OpenFile", "OpenRoot", "ReadFile", "WriteFile", "Create", "CreateTemp", "ReadDir", "Stat", "Lstat",
		"Readlink", "Remove", "RemoveAll",
		"Rename", "Link", "Symlink", "Mkdir", "MkdirAll", "MkdirTemp", "Chmod", "Chown", "Lchown", "Chtimes", "Truncate",
		"DirFS", "CopyFS", "Chdir",
	},
	"filepath": {"Walk", "WalkDir", "Glob", "EvalSymlinks"},
	"host":     {"ReadJSON"},
	"rawfile":  {"ReadFile"},
	"fs":       {"WalkDir", "Glob", "ReadFile", "ReadDir", "Stat"},
	"unix": {
		"Open", "Openat", "Openat2", "Creat", "Stat", "Lstat", "Fstatat", "Mkdir", "Mkdirat", "Mknod", "Mknodat", "Rename",
		"Renameat", "Renameat2", "Unlink",
		"Unlinkat", "Link", "Linkat", "Symlink", "Symlinkat", "Readlink", "Readlinkat", "Chmod", "Fchmodat", "Chown",
		"Lchown", "Fchownat", "Getxattr",
		"Setxattr", "Lgetxattr", "Lsetxattr", "Listxattr", "Llistxattr", "Removexattr", "Lremovexattr", "Utimes",
		"UtimesNanoAt", "Truncate", "Access",
	},
	"renameio": {"WriteFile", "NewPendingFile", "Symlink", "TempFile"},
}

// programs have the same effect.
var programs = []string{"cp", "tar", "rsync", "mv", "rm", "find", "chown", "chmod", "install"}

// guarded are the packages that access directories with files of others. For their files, the list
// names the functions that may nevertheless take paths.
var guarded = []string{
	"internal/volume", "internal/snapshot", "internal/backup", "internal/image", "internal/engine/lxc",
	"internal/engine/nodedir", "internal/site/sitefile", "internal/host/nodecopy/transfer.go",
}

// TestPaths: internal/tree is the only way to access directories with files of others. Any other
// use of a path is on a list, with the reason why no one else can have put a symbolic link there.
// New code uses internal/tree, or gets an entry on the list with a reason.
func TestPaths(t *testing.T) {
	seen := map[string]map[string]bool{} // file -> functions
	eachFile(t, func(pkg, path string, f *ast.File) {
		if pkg == "tree" {
			return
		}
		for _, d := range f.Decls {
			if taken := takes(d); taken != "" {
				if seen[path] == nil {
					seen[path] = map[string]bool{}
				}
				seen[path][called(d)] = true
				if why, listed := paths[path]; !listed || why == "" {
					t.Errorf("%s: %s calls %s: go through internal/tree, or list it in internal/paths_list_test.go with the reason why not",
						path, called(d), taken)
				} else if of, inside := guardOf(path); inside && !slices.Contains(functions[path], called(d)) {
					t.Errorf("%s: %s calls %s, in %s, which has to do with trees that others write: go through internal/tree, or list the function in internal/paths_list_test.go",
						path, called(d), taken, of)
				}
			}
		}
	})
	for path := range paths {
		if seen[path] == nil {
			t.Errorf("%s takes no path any more: take it from the list", path)
		}
	}
	for path, all := range functions {
		for _, name := range all {
			if !seen[path][name] {
				t.Errorf("%s: %s takes no path any more: take it from the list", path, name)
			}
		}
	}
	if t.Failed() && testing.Verbose() {
		t.Log(suggestion(seen))
	}
}

func guardOf(path string) (string, bool) {
	i := slices.IndexFunc(guarded, func(at string) bool { return path == at || strings.HasPrefix(path, at+"/") })
	if i < 0 {
		return "", false
	}
	return guarded[i], true
}

// takes returns the first call in a declaration that takes a path, or "".
func takes(d ast.Decl) string {
	found := ""
	ast.Inspect(d, func(n ast.Node) bool {
		switch x := n.(type) {
		case *ast.SelectorExpr:
			if of, ok := x.X.(*ast.Ident); ok && found == "" && slices.Contains(reaching[of.Name], x.Sel.Name) {
				found = of.Name + "." + x.Sel.Name
			}
		case *ast.CompositeLit:
			if word := program(x.Elts); found == "" && word != "" {
				found = word
			}
		case *ast.CallExpr:
			if word := program(x.Args); found == "" && word != "" {
				found = word
			}
		}
		return true
	})
	return found
}

// program returns the first of some words that names a program, or "".
func program(words []ast.Expr) string {
	for _, word := range words[:min(3, len(words))] {
		if l, ok := word.(*ast.BasicLit); ok && l.Kind == token.STRING {
			if text, err := strconv.Unquote(l.Value); err == nil && slices.Contains(programs, text) {
				return text
			}
		}
	}
	return ""
}

// called returns the name of a function including its receiver, or "-" for other declarations.
func called(d ast.Decl) string {
	f, ok := d.(*ast.FuncDecl)
	if !ok {
		return "-"
	}
	if f.Recv == nil {
		return f.Name.Name
	}
	return receiver(f) + "." + f.Name.Name
}

// receiver returns the name of a method's receiver type.
func receiver(f *ast.FuncDecl) string {
	of := f.Recv.List[0].Type
	for {
		switch x := of.(type) {
		case *ast.StarExpr:
			of = x.X
		case *ast.IndexExpr:
			of = x.X
		case *ast.IndexListExpr:
			of = x.X
		default:
			return name(of)
		}
	}
}

// suggestion returns the correct lists, for whoever has to update them.
func suggestion(seen map[string]map[string]bool) string {
	var b strings.Builder
	for _, path := range slices.Sorted(maps.Keys(seen)) {
		fmt.Fprintf(&b, "\t%q: %s,\n", path, paths[path])
	}
	for _, path := range slices.Sorted(maps.Keys(seen)) {
		if _, inside := guardOf(path); inside {
			fmt.Fprintf(&b, "\t%q: %#v,\n", path, slices.Sorted(maps.Keys(seen[path])))
		}
	}
	return b.String()
}
