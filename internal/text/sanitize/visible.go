// Package sanitize makes control characters visible in untrusted text. Examples are the output of
// nodes, names of their files, and the content of archives.
//
// A terminal obeys escape sequences in its input. They can move the cursor over previous lines, set
// the title, or make the terminal type a response. A mark for the direction of writing can reverse
// a name. This package replaces such characters by readable text such as \x1b or \u202e, and
// changes nothing else.
package sanitize

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Text sanitizes text with any number of lines. It keeps line ends and tabs.
func Text(s string) string { return escape(s, "\n\t") }

// Line sanitizes text that belongs on one line, such as a name. It also replaces line ends and
// tabs.
func Line(s string) string { return escape(s, "") }

// LastLines returns the last ten lines of a program's output, sanitized by Text.
func LastLines(printed []byte) string {
	printed = printed[max(0, len(printed)-4<<10):]
	lines := strings.Split(strings.TrimSpace(strings.ReplaceAll(string(printed), "\r", "")), "\n")
	return Text(strings.Join(lines[max(0, len(lines)-10):], "\n"))
}

func escape(s, kept string) string {
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
			b.WriteString(escapeRune(r))
		}
		from += size
	}
	return b.String()
}

// hidden reports whether a terminal or a reader may misinterpret a character. Such characters are
// the control characters of ASCII and ISO 8859, format characters (directions of writing, joiners,
// tags, all without width), Unicode's line ends, and noncharacters.
func hidden(r rune) bool {
	if r < utf8.RuneSelf {
		return r < ' ' || r == 0x7f
	}
	return unicode.In(r, unicode.Cc, unicode.Cf, unicode.Zl, unicode.Zp, unicode.Noncharacter_Code_Point)
}

func escapeRune(r rune) string {
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
