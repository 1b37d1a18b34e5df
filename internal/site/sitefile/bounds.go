package sitefile

import (
	"bytes"
	"fmt"

	"orrery/internal/strict"
)

// go-toml needs time that grows with the square of the number of keys of a table, and it parses
// nested values by recursion. A malicious file could therefore use excessive time and memory. Files
// that exceed these limits are rejected before go-toml parses them.
const (
	maxNesting = 64       // nested lists, tables and parts of a dotted key
	maxKeys    = 20_000   // in one table, or in a whole file with arrays of tables
	maxString  = 16 << 10 // bytes of a string in site.toml
	// keys, values and tables of a file, or of a site file and those that it extends; each dot of a
	// dotted key counts as four
	maxValues = 2 << 20
)

// measure returns the number of values including those before, or an error if the content exceeds a
// limit. The content need not be valid TOML.
func measure(content []byte, before int) (values int, err *strict.SyntaxError) {
	m := meter{line: 1, fresh: true, values: before}
	for len(content) > 0 {
		n := m.token(content)
		if m.wrong != "" {
			return m.values, &strict.SyntaxError{Line: m.line, What: m.wrong}
		}
		m.line += bytes.Count(content[:n], []byte{'\n'})
		content = content[n:]
	}
	return m.values, nil
}

// A meter scans a file token by token. It skips the content of strings and comments.
type meter struct {
	line         int
	lists        int // open lists and inline tables
	dots         int // in the current key
	keys, values int
	arrays       bool // the file has arrays of tables
	fresh        bool // only blanks so far on this line
	wrong        string
}

// token processes the first token of text and returns its length.
func (m *meter) token(text []byte) int {
	first := m.fresh
	m.fresh = first && (text[0] == ' ' || text[0] == '\t')
	switch text[0] {
	case '#':
		return lengthUntil(text, '\n')
	case '"', '\'':
		return quoted(text)
	case '\n':
		m.fresh, m.dots = true, 0
	case '[':
		if first && m.lists == 0 {
			m.header(text)
		}
		m.open()
	case '{':
		m.open()
	case ']', '}':
		m.lists = max(0, m.lists-1)
	case ',':
		m.dots = 0
		m.count(1)
	case '=':
		m.dots = 0
		m.count(1)
		if m.keys++; m.keys > maxKeys {
			m.wrong = fmt.Sprintf("more than %d keys in one table, or in a file with [[arrays of tables]]", maxKeys)
		}
	case '.':
		m.count(4)
		if m.dots++; m.dots > maxNesting {
			m.wrong = fmt.Sprintf("more than %d nested tables", maxNesting)
		}
	}
	return 1
}

func (m *meter) header(text []byte) {
	m.arrays = m.arrays || bytes.HasPrefix(text, []byte("[["))
	if m.dots = 0; !m.arrays {
		m.keys = 0
	}
	m.keys++
}

func (m *meter) open() {
	m.dots = 0
	m.count(1)
	if m.lists++; m.lists > maxNesting {
		m.wrong = fmt.Sprintf("more than %d nested lists or tables", maxNesting)
	}
}

func (m *meter) count(n int) {
	if m.values += n; m.values > maxValues {
		m.wrong = "more keys and values than any site needs"
	}
}

// lengthUntil returns the number of bytes before the next end byte, or the length of text.
func lengthUntil(text []byte, end byte) int {
	if i := bytes.IndexByte(text, end); i >= 0 {
		return i
	}
	return len(text)
}

// quoted returns the length of a string including its quotation marks. An unterminated single-line
// string ends at the end of the line.
func quoted(text []byte) int {
	mark := text[0]
	if triple := bytes.Repeat([]byte{mark}, 3); bytes.HasPrefix(text, triple) {
		for i := 3; i < len(text); i++ {
			switch {
			case text[i] == '\\' && mark == '"':
				i++
			case bytes.HasPrefix(text[i:], triple):
				// up to two more quotation marks may belong to the string
				for i += 3; i < len(text) && text[i] == mark; i++ {
				}
				return i
			}
		}
		return len(text)
	}
	for i := 1; i < len(text); i++ {
		switch text[i] {
		case '\\':
			if mark == '"' {
				i++
			}
		case mark:
			return i + 1
		case '\n':
			return i
		}
	}
	return len(text)
}
