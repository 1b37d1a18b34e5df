package selector

import (
	"strings"

	"orrery/internal/problem"
)

func (p *parser) problemAt(at token, format string, args ...any) *problem.Problem {
	what := problem.New(problem.Usage, format, args...).What
	return problem.New(problem.Usage, "selector %q at %d: %s", p.text, at.at, what)
}

func (p *parser) unknown(property token) *problem.Problem {
	known := strings.Join(properties, ", ")
	if nearest := problem.Suggest(property.text, properties); nearest != "" {
		return p.problemAt(property, "nodes have no property %q", property.text).
			Try("did you mean %q? Known: %s", nearest, known)
	}
	return p.problemAt(property, "nodes have no property %q", property.text).Try("known: %s", known)
}

func (p *parser) missing(at token) *problem.Problem {
	if at.kind == end {
		if strings.TrimSpace(p.text) == "" {
			return p.problemAt(at, "it is empty").Try("all selects every node")
		}
		return p.problemAt(at, "something is missing at the end").Try("add a name or property=value")
	}
	if at.kind == equal && p.next > 0 && p.tokens[p.next-1].kind == equal {
		return p.problemAt(at, "a second \"=\"").Try("write property=value")
	}
	return p.problemAt(at, "a name or property=value belongs here, not %q", at.text)
}

// surplus returns a problem for a token where only and, or or the end is possible.
func (p *parser) surplus() *problem.Problem {
	at := p.peek()
	switch {
	case at.kind == closing:
		return p.problemAt(at, "\")\" without \"(\"").Try("remove it")
	case at.kind == word && strings.Trim(at.text, "&") == "":
		return p.problemAt(at, "%q is not an operator", at.text).Try("write and")
	case at.kind == word && strings.Trim(at.text, "|") == "":
		return p.problemAt(at, "%q is not an operator", at.text).Try("write or")
	}
	return p.problemAt(at, "and, or or \",\" is missing before %q", at.text)
}
