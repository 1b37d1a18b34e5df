package pins

import (
	"strings"

	"orrery/internal/pattern"
)

// An answer is whether a marker holds where less is known of the system than the marker may ask.
type answer int

const (
	unknown answer = iota
	yes
	no
)

func (a answer) not() answer {
	switch a {
	case yes:
		return no
	case no:
		return yes
	}
	return unknown
}

// node are the variables of markers (PEP 508, "Environment Markers") that are the same in all nodes. Versions of Python and of
// the kernel, and the processor, are those of the image and of the host.
var node = map[string]string{
	"os_name": "posix", "sys_platform": "linux", "platform_system": "Linux",
	"platform_python_implementation": "CPython", "implementation_name": "cpython",
	"extra": "", // those belong to what a package needs, and not to what is asked for
}

// Never reports whether a marker keeps pip from installing the package in any node. One that cannot be read does not: pip is
// there to refuse it.
func (p *Pin) Never() bool {
	if p.Marker == "" {
		return false
	}
	m := marker{words: tokens().FindAllString(p.Marker, -1)}
	holds := m.any()
	return !m.wrong && len(m.words) == 0 && holds == no
}

var tokens = pattern.New(`"[^"]*"|'[^']*'|\(|\)|[<>=!~]+|[A-Za-z_.]+|\S`)

// A marker is what is left of one to be read.
type marker struct {
	words []string
	depth int
	wrong bool
}

// maxDepth is how many parentheses may stand in one another.
const maxDepth = 50

// next takes the next word, or returns "".
func (m *marker) next() string {
	if len(m.words) == 0 {
		return ""
	}
	word := m.words[0]
	m.words = m.words[1:]
	return word
}

// takes takes the next word if it is the one given.
func (m *marker) takes(word string) bool {
	if len(m.words) == 0 || m.words[0] != word {
		return false
	}
	m.words = m.words[1:]
	return true
}

// any reads terms joined by "or".
func (m *marker) any() answer {
	holds := m.all()
	for m.takes("or") {
		holds = (holds.not().and(m.all().not())).not()
	}
	return holds
}

// all reads terms joined by "and".
func (m *marker) all() answer {
	holds := m.one()
	for m.takes("and") {
		holds = holds.and(m.one())
	}
	return holds
}

func (a answer) and(b answer) answer {
	switch {
	case a == no || b == no:
		return no
	case a == yes && b == yes:
		return yes
	}
	return unknown
}

// one reads a comparison, or what is in parentheses.
func (m *marker) one() answer {
	if m.takes("(") {
		if m.depth++; m.depth > maxDepth {
			m.wrong = true
			return unknown
		}
		holds := m.any()
		m.depth--
		m.wrong = m.wrong || !m.takes(")")
		return holds
	}
	left := m.next()
	operator := m.next()
	if operator == "not" {
		operator += " " + m.next()
	}
	right := m.next()
	a, known := m.value(left)
	b, known2 := m.value(right)
	if !known || !known2 {
		return unknown
	}
	var holds bool
	switch operator {
	case "==", "===":
		holds = a == b
	case "!=":
		holds = a != b
	case "in":
		holds = strings.Contains(b, a)
	case "not in":
		holds = !strings.Contains(b, a)
	default:
		return unknown
	}
	if holds {
		return yes
	}
	return no
}

// value returns that of a text in quotes or of a variable. Not known: it differs from node to node, or there is no such variable.
func (m *marker) value(word string) (value string, known bool) {
	switch {
	case word == "" || word == "and" || word == "or" || word == ")":
		m.wrong = true
		return "", false
	case word[0] == '"' || word[0] == '\'':
		if len(word) < 2 {
			m.wrong = true
			return "", false
		}
		return word[1 : len(word)-1], true
	}
	value, known = node[word]
	return value, known
}
