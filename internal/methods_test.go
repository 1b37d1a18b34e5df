package internal

import (
	"go/ast"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// A type with more methods, or an interface that requires more, combines several subjects.
const (
	maxMethods = 25
	maxAsked   = 12
)

// TestMethods counts the methods of types, and the methods that interfaces require, including
// embedded interfaces.
func TestMethods(t *testing.T) {
	methods, interfaces := map[string]int{}, map[string]*asked{}
	for _, top := range []string{".", "../cmd"} {
		eachFileOf(t, top, func(file string, f *ast.File) {
			pkg := path.Join("internal", path.Dir(file))
			for _, d := range f.Decls {
				switch d := d.(type) {
				case *ast.FuncDecl:
					if d.Recv != nil {
						methods[pkg+"."+receiver(d)]++
					}
				case *ast.GenDecl:
					for _, s := range d.Specs {
						if s, ok := s.(*ast.TypeSpec); ok {
							if i, ok := s.Type.(*ast.InterfaceType); ok {
								interfaces[pkg+"."+s.Name.Name] = asks(pkg, f, i)
							}
						}
					}
				}
			}
		})
	}
	if len(methods) < 500 || len(interfaces) < 50 {
		t.Errorf("only %d types with methods and %d interfaces were found", len(methods), len(interfaces))
	}
	for _, name := range slices.Sorted(maps.Keys(methods)) {
		if n := methods[name]; n > maxMethods {
			t.Errorf("type %s has %d methods; at most %d are clear: part it by subject", name, n, maxMethods)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(interfaces)) {
		if n := count(interfaces, name); n > maxAsked {
			t.Errorf("interface %s asks for %d methods; at most %d are clear: part it by what its users need", name, n, maxAsked)
		}
	}
}

// asked has the methods that an interface requires, and its embedded interfaces.
type asked struct {
	methods  int
	embedded []string
}

func asks(pkg string, f *ast.File, i *ast.InterfaceType) *asked {
	a := &asked{}
	for _, m := range i.Methods.List {
		a.methods += len(m.Names)
		switch x := m.Type.(type) {
		case *ast.Ident:
			a.embedded = append(a.embedded, pkg+"."+x.Name)
		case *ast.SelectorExpr:
			a.embedded = append(a.embedded, packageOf(f, name(x.X))+"."+x.Sel.Name)
		}
	}
	return a
}

// count returns how many methods an interface requires. An interface of another module counts as
// one.
func count(all map[string]*asked, name string) int {
	a := all[name]
	if a == nil {
		return 1
	}
	n := a.methods
	for _, e := range a.embedded {
		n += count(all, e)
	}
	return n
}

// packageOf returns the directory of a package by its name in a file. For a package of another
// module it returns the name.
func packageOf(f *ast.File, name string) string {
	for _, i := range f.Imports {
		at, err := strconv.Unquote(i.Path.Value)
		called := path.Base(at)
		if i.Name != nil {
			called = i.Name.Name
		}
		if own, ok := strings.CutPrefix(at, "orrery/"); err == nil && ok && called == name {
			return own
		}
	}
	return name
}
