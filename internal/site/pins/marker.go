package pins

import (
	"cmp"
	"slices"
	"strings"

	"orrery/internal/text/pattern"
)

// An answer is whether a marker holds. It is unknown if that depends on properties of the system
// that are not known.
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

// node has the variables of markers (PEP 508, "Environment Markers") with the same value in all
// nodes.
var node = map[string]string{
	"os_name": "posix", "sys_platform": "linux", "platform_system": "Linux",
	"platform_python_implementation": "CPython", "implementation_name": "cpython",
	"extra": "", // extras belong to the dependencies of a package, not to a requirements file
}

// differing are the other variables. Their values depend on the image (Python's version) and the
// host (kernel and processor).
var differing = []string{
	"platform_machine", "platform_release", "platform_version", "python_version", "python_full_version",
	"implementation_version",
}

// former maps names of variables from before PEP 508, which pip still accepts, to the present
// names.
var former = map[string]string{
	"os.name": "os_name", "sys.platform": "sys_platform", "platform.version": "platform_version",
	"platform.machine": "platform_machine", "platform.python_implementation": "platform_python_implementation",
	"python_implementation": "platform_python_implementation",
}

// Never reports whether the marker excludes the package in all nodes.
func (p *Pin) Never() bool {
	holds, _ := p.holds()
	return holds == no
}

// Always reports whether the marker includes the package in all nodes.
func (p *Pin) Always() bool {
	holds, _ := p.holds()
	return holds == yes
}

// holds returns whether the marker holds in nodes, and whether pip can parse it.
func (p *Pin) holds() (holds answer, legible bool) {
	if p.Marker == "" {
		return yes, true
	}
	m := marker{words: tokens().FindAllString(p.Marker, -1)}
	if holds = m.any(); m.wrong || len(m.words) > 0 {
		return unknown, false
	}
	return holds, true
}

var tokens = pattern.New(`"[^"]*"|'[^']*'|\(|\)|[<>=!~]+|[A-Za-z_.]+|\S`)

// A marker is the unparsed rest of a marker.
type marker struct {
	words []string
	depth int
	wrong bool
}

// maxDepth is the maximum depth of nested parentheses.
const maxDepth = 50

// next consumes and returns the next word, or "" at the end.
func (m *marker) next() string {
	if len(m.words) == 0 {
		return ""
	}
	word := m.words[0]
	m.words = m.words[1:]
	return word
}

// accept consumes the next word if it equals word. It reports whether it did.
func (m *marker) accept(word string) bool {
	if len(m.words) == 0 || m.words[0] != word {
		return false
	}
	m.words = m.words[1:]
	return true
}

// any parses terms joined by "or".
func (m *marker) any() answer {
	holds := m.all()
	for m.accept("or") {
		holds = (holds.not().and(m.all().not())).not()
	}
	return holds
}

// all parses terms joined by "and".
func (m *marker) all() answer {
	holds := m.one()
	for m.accept("and") {
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

// one parses a comparison or a parenthesized expression.
func (m *marker) one() answer {
	if m.accept("(") {
		if m.depth++; m.depth > maxDepth {
			m.wrong = true
			return unknown
		}
		holds := m.any()
		m.depth--
		m.wrong = m.wrong || !m.accept(")")
		return holds
	}
	left := m.next()
	operator := m.next()
	if operator == "not" {
		operator += " " + m.next()
	}
	right := m.next()
	m.wrong = m.wrong || !slices.Contains(operators, operator)
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
	default: // versions and text have different rules for comparison
		return unknown
	}
	if holds {
		return yes
	}
	return no
}

// operators are the comparison operators of markers.
var operators = []string{"==", "!=", "<", "<=", ">", ">=", "~=", "===", "in", "not in"}

// value returns the value of a quoted string or a variable. It returns false if the value differs
// between nodes, or if word is neither.
func (m *marker) value(word string) (value string, known bool) {
	if len(word) > 1 && (word[0] == '"' || word[0] == '\'') {
		return word[1 : len(word)-1], true
	}
	value, known = node[cmp.Or(former[word], word)]
	m.wrong = m.wrong || !known && !slices.Contains(differing, cmp.Or(former[word], word))
	return value, known
}
