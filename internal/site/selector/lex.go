package selector

import "unicode/utf8"

type kind int

const (
	end kind = iota
	word
	open
	closing
	comma
	equal
	notEqual
	notWord
	andWord
	orWord
)

// A token is a word or an operator.
type token struct {
	kind kind
	text string
	at   int // column, from 1
}

// lex splits the text into tokens. The last token is the end.
func lex(text string) []token {
	var tokens []token
	column := 1
	for rest := text; ; {
		var k kind
		var size int
		switch {
		case rest == "":
			return append(tokens, token{end, "", column})
		case isSpace(rest[0]):
			rest, column = rest[1:], column+1
			continue
		case rest[0] == '(':
			k, size = open, 1
		case rest[0] == ')':
			k, size = closing, 1
		case rest[0] == ',':
			k, size = comma, 1
		case rest[0] == '=':
			k, size = equal, 1
		case len(rest) > 1 && rest[:2] == "!=":
			k, size = notEqual, 2
		default:
			k, size = word, wordSize(rest)
		}
		t := token{k, rest[:size], column}
		switch t.text {
		case "not":
			t.kind = notWord
		case "and":
			t.kind = andWord
		case "or":
			t.kind = orWord
		}
		tokens = append(tokens, t)
		column += utf8.RuneCountInString(t.text)
		rest = rest[size:]
	}
}

func isSpace(c byte) bool { return c == ' ' || c == '\t' || c == '\n' || c == '\r' }

// wordSize returns the number of bytes before the next operator or space.
func wordSize(text string) int {
	for i := range len(text) {
		switch c := text[i]; {
		case isSpace(c), c == '(', c == ')', c == ',', c == '=':
			return i
		case c == '!' && i+1 < len(text) && text[i+1] == '=':
			return i
		}
	}
	return len(text)
}
