package main

import (
	"cmp"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"slices"
	"strconv"
)

// A mutation replaces a part of one file with text that introduces one small fault.
type mutation struct {
	file string
	kind string
	at   token.Position
	// reach is a position that runs whenever the mutated part does: the same as at, unless at is in
	// no block of the coverage.
	reach      token.Position
	start, end int
	text       string
}

// apply returns the source with the mutation in it.
func (m mutation) apply(source []byte) []byte {
	return slices.Concat(source[:m.start], []byte(m.text), source[m.end:])
}

// opposites are operators that programmers confuse. Combinations that the types do not support,
// such as "-" for strings, do not compile and are then left out.
var opposites = map[token.Token][]string{
	token.EQL: {"!="}, token.NEQ: {"=="}, token.LAND: {"||"}, token.LOR: {"&&"},
	token.LSS: {"<=", ">="}, token.LEQ: {"<", ">"}, token.GTR: {">=", "<="}, token.GEQ: {">", "<"},
	token.ADD: {"-"}, token.SUB: {"+"}, token.MUL: {"/"}, token.QUO: {"*"},
	token.AND: {"|"}, token.OR: {"&"}, token.SHL: {">>"}, token.SHR: {"<<"},
}

// mutationsOf returns all mutations of the functions in one file.
func mutationsOf(file string, source []byte) ([]mutation, error) {
	positions := token.NewFileSet()
	tree, err := parser.ParseFile(positions, file, source, parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	f := &finder{file: file, source: source, positions: positions}
	for _, d := range tree.Decls {
		if function, ok := d.(*ast.FuncDecl); ok && function.Body != nil {
			f.walk(function.Body, function.Type.Results)
		}
	}
	slices.SortStableFunc(f.found, func(a, b mutation) int { return cmp.Compare(a.start, b.start) })
	return f.found, nil
}

// A finder collects the mutations of one file.
type finder struct {
	file      string
	source    []byte
	positions *token.FileSet
	outside   []span
	found     []mutation
}

// A span is a part of a function that is in no block of the coverage. It counts as run when the
// place reach does.
type span struct{ from, to, reach token.Pos }

// add records that the source between two positions is replaced with text.
func (f *finder) add(kind string, from, to token.Pos, text string) {
	at, reach := f.positions.Position(from), from
	for _, s := range f.outside {
		if s.from <= from && from < s.to {
			reach = s.reach
		}
	}
	f.found = append(f.found, mutation{f.file, kind, at, f.positions.Position(reach), at.Offset,
		f.positions.Position(to).Offset, text})
}

// between returns the source between two positions.
func (f *finder) between(from, to token.Pos) string {
	return string(f.source[f.positions.Position(from).Offset:f.positions.Position(to).Offset])
}

// walk collects the mutations in the body of a function that returns results.
func (f *finder) walk(body ast.Node, results *ast.FieldList) {
	ast.Inspect(body, func(n ast.Node) bool {
		if s, ok := n.(ast.Stmt); ok {
			f.afterLiterals(s)
		}
		switch n := n.(type) {
		case *ast.FuncLit:
			f.walk(n.Body, n.Type.Results)
			return false
		case *ast.SwitchStmt:
			f.conditions(n)
		case *ast.BlockStmt:
			f.drop(n.List)
		case *ast.CaseClause:
			f.drop(n.Body)
		case *ast.CommClause:
			f.drop(n.Body)
		case *ast.ReturnStmt:
			f.returns(n, results)
		case *ast.IfStmt:
			f.add("negate the condition", n.Cond.Pos(), n.Cond.End(), "!("+f.between(n.Cond.Pos(), n.Cond.End())+")")
		case *ast.BinaryExpr:
			for _, other := range opposites[n.Op] {
				f.add("another operator", n.OpPos, n.OpPos+token.Pos(len(n.Op.String())), other)
			}
		case *ast.BasicLit:
			if number, err := strconv.ParseInt(n.Value, 0, 64); err == nil && n.Kind == token.INT {
				f.add("another number", n.Pos(), n.End(), strconv.FormatInt(number+1, 10))
			}
		case *ast.Ident:
			if other, ok := map[string]string{"true": "false", "false": "true"}[n.Name]; ok {
				f.add("another truth", n.Pos(), n.End(), other)
			}
		}
		return true
	})
}

// conditions records the positions of the case conditions of a switch, which run when the switch
// does.
func (f *finder) conditions(s *ast.SwitchStmt) {
	for _, clause := range s.Body.List {
		for _, e := range clause.(*ast.CaseClause).List {
			f.outside = append(f.outside, span{e.Pos(), e.End(), s.Pos()})
		}
	}
}

// afterLiterals records the parts of a statement that come after function literals and run when the
// statement does. The block in which the statement begins ends at the end of the first literal's
// body.
func (f *finder) afterLiterals(s ast.Stmt) {
	end := s.End()
	switch s := s.(type) {
	case *ast.IfStmt:
		end = s.Body.Pos()
	case *ast.ForStmt:
		end = s.Body.Pos()
	case *ast.RangeStmt:
		end = s.Body.Pos()
	case *ast.SwitchStmt:
		end = s.Body.Pos()
	case *ast.AssignStmt, *ast.ExprStmt, *ast.ReturnStmt:
	default:
		return // it consists of other statements, or seldom has literals
	}
	var bodies []*ast.BlockStmt
	ast.Inspect(s, func(n ast.Node) bool {
		literal, ok := n.(*ast.FuncLit)
		if ok && literal.Pos() < end {
			bodies = append(bodies, literal.Body)
		}
		return !ok && (n == nil || n.Pos() < end)
	})
	for i, body := range bodies {
		to := end
		if i+1 < len(bodies) {
			to = bodies[i+1].Pos()
		}
		f.outside = append(f.outside, span{body.End(), to, s.Pos()})
	}
}

// drop collects the statements that can be left out. Declarations cannot, since code that uses them
// would not compile.
func (f *finder) drop(list []ast.Stmt) {
	for _, s := range list {
		switch s := s.(type) {
		case *ast.AssignStmt:
			if s.Tok == token.DEFINE {
				continue
			}
		case *ast.ExprStmt, *ast.IncDecStmt, *ast.DeferStmt, *ast.GoStmt, *ast.BranchStmt, *ast.SendStmt:
		default:
			continue
		}
		f.add("leave out the statement", s.Pos(), s.End(), "")
	}
}

// returns collects a return whose error is dropped. For "return f()", the call stays but its
// results are dropped.
func (f *finder) returns(s *ast.ReturnStmt, results *ast.FieldList) {
	if results == nil || len(s.Results) != results.NumFields() {
		return
	}
	kind, ok := results.List[len(results.List)-1].Type.(*ast.Ident)
	last := s.Results[len(s.Results)-1]
	text := f.between(last.Pos(), last.End())
	if !ok || kind.Name != "error" || text == "nil" {
		return
	}
	if len(s.Results) == 1 {
		f.add("drop the error", s.Pos(), s.End(), fmt.Sprintf("{ _ = error(%s); return nil }", text))
	} else {
		f.add("drop the error", last.Pos(), last.End(), "func() error { _ = error("+text+"); return nil }()")
	}
}
