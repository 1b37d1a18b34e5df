package selector

import (
	"path"
	"slices"

	"orrery/internal/problem"
)

// maxDepth limits the nesting of parentheses and nots, so that no text exhausts the stack.
const maxDepth = 100

// maxLength limits the bytes of a selector, because the time to evaluate it grows with its length.
const maxLength = 64 << 10

// Parse parses a selector:
//
//	or      = and { "or" and }
//	and     = unary { "and" unary }
//	unary   = "not" unary | "(" or ")" | list
//	list    = item { "," item }
//	item    = [ property ( "=" | "!=" ) ] value
//
// In a list, a value without a property has the property of the previous item. The first value
// without a property is a name.
func Parse(text string) (Selector, error) {
	if len(text) > maxLength {
		return Selector{}, problem.New(problem.Usage, "the selector has %d bytes, more than %d", len(text), maxLength).
			Try("declare a group of the nodes")
	}
	p := &parser{text: text, tokens: lex(text)}
	e, err := p.or(0)
	if err == nil && p.peek().kind != end {
		err = p.surplus()
	}
	if err != nil {
		return Selector{}, err
	}
	return Selector{text: text, expr: e}, nil
}

type parser struct {
	text   string
	tokens []token
	next   int
}

func (p *parser) peek() token { return p.tokens[p.next] }

// accept consumes the next token if it is of kind k. It reports whether it did.
func (p *parser) accept(k kind) bool {
	if p.peek().kind != k {
		return false
	}
	p.next++
	return true
}

func (p *parser) or(depth int) (expr, error) {
	x, err := p.and(depth)
	for err == nil && p.accept(orWord) {
		var y expr
		y, err = p.and(depth)
		x = or{x, y}
	}
	return x, err
}

func (p *parser) and(depth int) (expr, error) {
	x, err := p.unary(depth)
	for err == nil && p.accept(andWord) {
		var y expr
		y, err = p.unary(depth)
		x = and{x, y}
	}
	return x, err
}

func (p *parser) unary(depth int) (expr, error) {
	if depth > maxDepth {
		return nil, p.problemAt(p.peek(), "more than %d nested parentheses", maxDepth)
	}
	switch {
	case p.accept(notWord):
		x, err := p.unary(depth + 1)
		return not{x}, err
	case p.peek().kind == open:
		opening := p.peek()
		p.next++
		x, err := p.or(depth + 1)
		if err == nil && !p.accept(closing) {
			if p.peek().kind == end {
				return nil, p.problemAt(opening, "this parenthesis is never closed").Try("add \")\"")
			}
			err = p.surplus()
		}
		return x, err
	}
	return p.list()
}

func (p *parser) list() (expr, error) {
	property, negated := "", false
	var x, unequal expr
	for {
		first := p.peek()
		if first.kind != word {
			return nil, p.missing(first)
		}
		p.next++
		value := first
		if op := p.peek(); op.kind == equal || op.kind == notEqual {
			p.next++
			if !slices.Contains(properties, first.text) {
				return nil, p.unknown(first)
			}
			property, negated = first.text, op.kind == notEqual
			value = p.peek()
			if !p.accept(word) {
				return nil, p.missing(value)
			}
		}
		y, err := p.term(property, value)
		if err != nil {
			return nil, err
		}
		// "role!=a,b" means neither a nor b, whereas "role=a,b" means a or b.
		if negated {
			unequal = join(unequal, not{y}, func(x, y expr) expr { return and{x, y} })
		} else {
			x = join(x, y, func(x, y expr) expr { return or{x, y} })
		}
		if !p.accept(comma) {
			break
		}
	}
	return join(x, unequal, func(x, y expr) expr { return or{x, y} }), nil
}

func join(x, y expr, with func(x, y expr) expr) expr {
	switch {
	case x == nil:
		return y
	case y == nil:
		return x
	}
	return with(x, y)
}

func (p *parser) term(property string, value token) (expr, error) {
	t := term{property: property, value: value.text, at: value.at}
	switch property {
	case "":
		if value.text == "all" {
			return all{}, nil
		}
		t.property = "name"
	case "id":
		var ok bool
		if t.from, t.to, ok = parseIDRange(value.text); !ok {
			return nil, p.problemAt(value, "%q is not an id", value.text).Try("write id=101 or id=200..231")
		}
		return t, nil
	case "production", "privileged":
		if value.text != "true" && value.text != "false" {
			return nil, p.problemAt(value, "%s must be true or false, not %q", property, value.text)
		}
		return t, nil
	}
	if _, err := path.Match(value.text, ""); err != nil {
		return nil, p.problemAt(value, "%q is not a well-formed pattern", value.text).Try("close the bracket: [a-c]")
	}
	return t, nil
}
