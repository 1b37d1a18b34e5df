package internal

import (
	"bytes"
	"go/ast"
	"os"
	"path"
	"strconv"
	"strings"
	"testing"
)

const (
	maxExported = 60  // exported names of a package, all of which its users must know
	minLines    = 300 // of a package with a single importer, which could contain it as files
)

// vocabularies are packages that export more names. Other packages must be split when they grow.
var vocabularies = map[string]int{
	"site":    130, // what a site file can declare; it is the specification
	"observe": 80,  // what hosts can report
	"host":    100,
	"apply":   75,
	"plan":    62,
}

// alone are short packages with a single importer, each with the reason why it is not a file of
// that package.
var alone = map[string]string{
	"control/dom0":    "an operation, which the program starts under another name",
	"control/members": "an operation; each is a package",
	"control/picture": "an operation; each is a package",

	"control/sshconfig": "an operation; each is a package",

	"cli/rehearse":       "verbs of one subject; each subject is a package",
	"cli/backlog":        "a wall with rules of its own: its reader is hostile",
	"engine/kvm/record":  "orrery-guest is this program, and has nothing else of kvm",
	"engine/seed":        "a format, which knows no engine",
	"host/holders":       "its tests are processes of their own, which hold locks",
	"host/outfit":        "knows a host's packages; control/here must not",
	"lab/report/history": "a report of its own, over many bundles",
	"lab/test/all":       "the only list of tests, which all of them need not import",
	"plan/boot":          "pure, and below control/unattended, which does what it decides",
	"plan/handover":      "pure, with words of its own; plan has as many as one can know",
	"plan/wayback":       "pure, and below control, which does what it decides",

	"apply/local/memory":          "a host in memory, for tests",
	"host/runnertest":             "tests of several packages use it",
	"strict/jsonlimit/jsonattack": "tests of several packages use it",
	"treesync/treesynctest":       "tests of several packages use it",
}

// TestSizes: a package is neither too large to understand nor too small to exist.
func TestSizes(t *testing.T) {
	exported, lines, importers := map[string]map[string]bool{}, map[string]int{}, map[string]map[string]bool{}
	eachFile(t, func(pkg, at string, f *ast.File) {
		if exported[pkg] == nil {
			exported[pkg] = map[string]bool{}
		}
		for _, d := range f.Decls {
			for _, name := range declared(d) {
				if ast.IsExported(name) {
					exported[pkg][name] = true
				}
			}
		}
		for _, i := range f.Imports {
			name, _ := strconv.Unquote(i.Path.Value)
			if other, ours := strings.CutPrefix(name, "orrery/internal/"); ours && other != pkg {
				if importers[other] == nil {
					importers[other] = map[string]bool{}
				}
				importers[other][pkg] = true
			}
		}
		if path.Base(at) == "doc.go" {
			return
		}
		text, err := os.ReadFile(strings.TrimPrefix(at, "internal/"))
		if err != nil {
			t.Fatal(err)
		}
		lines[pkg] += bytes.Count(text, []byte("\n"))
	})
	if len(lines) < 100 {
		t.Errorf("only %d packages were found", len(lines))
	}
	for pkg, names := range exported {
		if most := max(vocabularies[pkg], maxExported); len(names) > most {
			t.Errorf("package %s exports %d names; at most %d are clear: part it by what changes together",
				pkg, len(names), most)
		}
		small := len(importers[pkg]) <= 1 && lines[pkg] < minLines
		if small && alone[pkg] == "" {
			t.Errorf("package %s has %d lines, and one other imports it: make it files of that, or say here why not",
				pkg, lines[pkg])
		}
		if !small && alone[pkg] != "" {
			t.Errorf("package %s is not so small, or others import it: take it from the list", pkg)
		}
	}
}

// declared returns the names in a declaration, except those of methods.
func declared(d ast.Decl) (names []string) {
	switch d := d.(type) {
	case *ast.FuncDecl:
		if d.Recv == nil {
			names = append(names, d.Name.Name)
		}
	case *ast.GenDecl:
		for _, spec := range d.Specs {
			switch spec := spec.(type) {
			case *ast.TypeSpec:
				names = append(names, spec.Name.Name)
			case *ast.ValueSpec:
				for _, name := range spec.Names {
					names = append(names, name.Name)
				}
			}
		}
	}
	return names
}
