package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path"
	"regexp"
	"strconv"
	"strings"
)

// comments returns the comments of a Go file that describe declarations, each with the declaration.
func comments(file string, content []byte) (all []text, err error) {
	set := token.NewFileSet()
	f, err := parser.ParseFile(set, file, content, parser.ParseComments)
	if err != nil {
		return nil, err
	}
	add := func(what string, groups ...*ast.CommentGroup) {
		for _, c := range groups {
			if words := oneLine(c.Text()); words != "" { // a directive has none
				all = append(all, text{fmt.Sprintf("%s:%d", file, set.Position(c.Pos()).Line), words + " [" + what + "]"})
			}
		}
	}
	add("package "+f.Name.Name, f.Doc)
	ast.Inspect(f, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncDecl:
			add("func "+n.Name.Name, n.Doc)
		case *ast.GenDecl:
			add(n.Tok.String()+" "+declared(n), n.Doc)
		case *ast.TypeSpec:
			add("type "+n.Name.Name, n.Doc, n.Comment)
		case *ast.ValueSpec:
			add(n.Names[0].Name, n.Doc, n.Comment)
		case *ast.Field:
			if len(n.Names) > 0 {
				add("field "+n.Names[0].Name, n.Doc, n.Comment)
			}
		}
		return true
	})
	return all, nil
}

// declared returns the first name that a declaration declares.
func declared(d *ast.GenDecl) string {
	if len(d.Specs) > 0 {
		switch s := d.Specs[0].(type) {
		case *ast.TypeSpec:
			return s.Name.Name
		case *ast.ValueSpec:
			return s.Names[0].Name
		}
	}
	return ""
}

// messageFuncs are the names of functions whose texts users read, in whatever package.
var messageFuncs = map[string]bool{
	"New": true, "Try": true, "Errorf": true, "Notice": true, "Trouble": true, "mistake": true,
}

// messages returns the texts that a Go file passes to functions for errors and other messages.
func messages(file string, content []byte) (all []text, err error) {
	set := token.NewFileSet()
	f, err := parser.ParseFile(set, file, content, parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	ast.Inspect(f, func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		if !ok || !messageFuncs[called(call)] {
			return true
		}
		for _, arg := range call.Args {
			if said := literal(arg); strings.Contains(strings.TrimSpace(said), " ") {
				all = append(all, text{fmt.Sprintf("%s:%d", file, set.Position(arg.Pos()).Line), oneLine(said)})
				break // the others are arguments of the format
			}
		}
		return true
	})
	return all, nil
}

// called returns the name of the called function, without its package or receiver.
func called(call *ast.CallExpr) string {
	switch f := call.Fun.(type) {
	case *ast.Ident:
		return f.Name
	case *ast.SelectorExpr:
		return f.Sel.Name
	}
	return ""
}

// literal returns the text of a string literal, or of several that are added, with an ellipsis for
// what is only known when the program runs.
func literal(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.BasicLit:
		if e.Kind == token.STRING {
			said, _ := strconv.Unquote(e.Value)
			return said
		}
	case *ast.BinaryExpr:
		left, right := literal(e.X), literal(e.Y)
		if left != "" && right == "" {
			right = "…"
		}
		return left + right
	}
	return ""
}

var (
	codeBlock   = regexp.MustCompile("(?ms)^ *```.*?^ *```$")
	paragraphs  = regexp.MustCompile(`\n\s*\n|\n(?:\s*(?:[-*]|\d+\.) |\|)|\|`)
	sentenceEnd = regexp.MustCompile(`[.!?:] +[A-Z*\x60\[]`)
)

// sentences returns the sentences of a document, without code blocks, headings and short cells of
// tables.
func sentences(file string, content []byte) (all []text, err error) {
	for _, p := range paragraphs.Split(codeBlock.ReplaceAllString(string(content), "\n\n"), -1) {
		p = oneLine(p)
		if strings.HasPrefix(p, "#") {
			continue
		}
		for p != "" {
			end := len(p)
			if at := sentenceEnd.FindStringIndex(p); at != nil {
				end = at[0] + 1
			}
			if s := strings.TrimSpace(p[:end]); len(strings.Fields(s)) > 4 {
				all = append(all, text{path.Clean(file), s})
			}
			p = p[end:]
		}
	}
	return all, nil
}

// oneLine returns a text with single spaces between its words.
func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }
