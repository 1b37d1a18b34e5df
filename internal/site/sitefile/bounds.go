package sitefile

import (
	"bytes"
	"fmt"

	"orrery/internal/strict"
)

// What go-toml takes of a file costs it time and memory that no file of an honest site needs: its
// time grows with the square of the keys of one table, and what is one in another it reads by
// recursion. So more than the following is refused before it sees the file.
const (
	maxNesting = 64       // lists, tables and dotted keys one in another
	maxKeys    = 20_000   // in one table; in all of a file with arrays of tables
	maxString  = 16 << 10 // bytes of a string of site.toml
	maxValues  = 2 << 20  // keys, values and tables of a file, a part of a dotted key counting for four
)

// measure tells what is too much in a file, whether it is TOML or not.
func measure(content []byte) *strict.SyntaxError {
	m := meter{line: 1, fresh: true}
	for len(content) > 0 {
		n := m.token(content)
		if m.wrong != "" {
			return &strict.SyntaxError{Line: m.line, What: m.wrong}
		}
		m.line += bytes.Count(content[:n], []byte{'\n'})
		content = content[n:]
	}
	return nil
}

// A meter goes over a file token by token. What is within strings and comments it passes over.
type meter struct {
	line         int
	lists        int // that are open, and tables in braces
	dots         int // in the key at hand
	keys, values int
	arrays       bool // there are arrays of tables
	fresh        bool // nothing has been on the line yet but blanks
	wrong        string
}

// token takes in what the text begins with, and gives its length.
func (m *meter) token(text []byte) int {
	first := m.fresh
	m.fresh = first && (text[0] == ' ' || text[0] == '\t')
	switch text[0] {
	case '#':
		return until(text, '\n')
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
			m.wrong = fmt.Sprintf("more than %d tables one in another", maxNesting)
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
		m.wrong = fmt.Sprintf("more than %d lists or tables one in another", maxNesting)
	}
}

func (m *meter) count(n int) {
	if m.values += n; m.values > maxValues {
		m.wrong = "more keys and values than any site has"
	}
}

// until returns how far it is to a byte, or to the end.
func until(text []byte, end byte) int {
	if i := bytes.IndexByte(text, end); i >= 0 {
		return i
	}
	return len(text)
}

// quoted returns the length of a string, with its quotation marks. One of a single line that does
// not end there ends with the line.
func quoted(text []byte) int {
	mark := text[0]
	if triple := bytes.Repeat([]byte{mark}, 3); bytes.HasPrefix(text, triple) {
		for i := 3; i < len(text); i++ {
			switch {
			case text[i] == '\\' && mark == '"':
				i++
			case bytes.HasPrefix(text[i:], triple):
				for i += 3; i < len(text) && text[i] == mark; i++ { // two more may belong to the text
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
