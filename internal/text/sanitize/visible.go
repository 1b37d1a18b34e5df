// Package sanitize makes control characters visible in text that others have written: what nodes
// print, the names of their files, what archives contain.
//
// A terminal obeys what it is sent: an escape sequence moves the cursor over lines that were
// printed before, sets the title, asks the terminal to type an answer; a mark for the direction of
// writing turns a name round. Here such characters become text that says what they are, as \x1b or
// \u202e, and nothing else is changed.
package sanitize

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Text shows text of any number of lines: ends of lines and tabs are kept.
func Text(s string) string { return show(s, "\n\t") }

// Line shows text that belongs on one line, such as a name: ends of lines and tabs are shown, too.
func Line(s string) string { return show(s, "") }

// LastLines returns the last ten lines of what a program has printed, as Text.
func LastLines(printed []byte) string {
	printed = printed[max(0, len(printed)-4<<10):]
	lines := strings.Split(strings.TrimSpace(strings.ReplaceAll(string(printed), "\r", "")), "\n")
	return Text(strings.Join(lines[max(0, len(lines)-10):], "\n"))
}

func show(s, kept string) string {
	clean := func(r rune, size int) bool {
		return (r != utf8.RuneError || size > 1) && (!hidden(r) || strings.ContainsRune(kept, r))
	}
	from := 0
	for from < len(s) {
		r, size := utf8.DecodeRuneInString(s[from:])
		if !clean(r, size) {
			break
		}
		from += size
	}
	if from == len(s) {
		return s
	}
	var b strings.Builder
	b.Grow(len(s) + 16)
	b.WriteString(s[:from])
	for from < len(s) {
		r, size := utf8.DecodeRuneInString(s[from:])
		switch {
		case clean(r, size):
			b.WriteString(s[from : from+size])
		case r == utf8.RuneError:
			fmt.Fprintf(&b, `\x%02x`, s[from])
		default:
			b.WriteString(form(r))
		}
		from += size
	}
	return b.String()
}

// hidden reports whether a terminal, or a reader, may not see a character for what it is: control
// characters of ASCII and of ISO 8859, formats (directions of writing, joiners, tags: all that have
// no width), the line ends of Unicode, and what is no character.
func hidden(r rune) bool {
	if r < utf8.RuneSelf {
		return r < ' ' || r == 0x7f
	}
	return unicode.In(r, unicode.Cc, unicode.Cf, unicode.Zl, unicode.Zp, unicode.Noncharacter_Code_Point)
}

func form(r rune) string {
	switch {
	case r == '\n':
		return `\n`
	case r == '\t':
		return `\t`
	case r == '\r':
		return `\r`
	case r < utf8.RuneSelf:
		return fmt.Sprintf(`\x%02x`, r)
	case r <= 0xffff:
		return fmt.Sprintf(`\u%04x`, r)
	}
	return fmt.Sprintf(`\U%08x`, r)
}
