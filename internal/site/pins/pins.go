// Package pins parses requirements files of pip. It returns which Python packages they pin, to
// which versions, and for which systems. It understands only lines that pin one version, because
// Orrery accepts no others (pip's "Requirements File Format", PEP 440, PEP 508).
package pins

import (
	"regexp"
	"strings"

	"orrery/internal/text/pattern"
)

// A Line is a line of a requirements file, with continuation lines joined.
type Line struct {
	Number int    // number of its first line in the file
	Text   string // without comment and hashes
	Hashed bool   // it has digests of files
	Hashes string // as written, with --hash=
	Pin    *Pin   // nil if the line does not pin a package to one version
	// Wrong is Extras or Marker if only that part keeps pip from parsing the line as a pin, or "".
	Wrong string
}

// Parts of a line that pip may be unable to parse, as words for messages.
const (
	Extras = "extras"
	Marker = "a marker"
)

// A Pin is the pinned version of a package.
type Pin struct {
	Name    string // as written
	Extras  string // as written, with brackets, or ""
	Version string
	Marker  string // condition on the system, or "" for all systems
}

// Lines returns the non-empty lines of a requirements file.
func Lines(text string) []Line {
	var all []Line
	var joined strings.Builder
	first, number := 0, 0
	for line := range strings.Lines(text) {
		number++
		line = strings.TrimRight(line, "\r\n")
		if first == 0 {
			first = number
		}
		if head, continued := strings.CutSuffix(line, `\`); continued {
			joined.WriteString(head)
			joined.WriteByte(' ')
			continue
		}
		joined.WriteString(line)
		if l := lineOf(joined.String()); l.Text != "" {
			l.Number = first
			all = append(all, l)
		}
		joined.Reset()
		first = 0
	}
	return all
}

// comment matches a comment. As in pip, "#" must be at the start or after white space:
// "six==1.16.0#c" has no comment.
var comment = pattern.New(`(^|\s)#.*$`)

func lineOf(whole string) Line {
	whole = comment().ReplaceAllString(whole, "")
	text, hashes, hashed := strings.Cut(whole, "--hash")
	l := Line{Text: strings.TrimSpace(text), Hashed: hashed}
	if hashed {
		l.Hashes = "--hash" + strings.TrimSpace(hashes)
	}
	m := pin().FindStringSubmatch(l.Text)
	if m == nil || !versions[m[3]]().MatchString(m[4]) {
		return l
	}
	p := &Pin{Name: m[1], Extras: m[2], Version: m[4], Marker: strings.TrimSpace(m[5])}
	switch _, legible := p.holds(); {
	case p.Extras != "" && !extras().MatchString(p.Extras):
		l.Wrong = Extras
	case !legible:
		l.Wrong = Marker
	default:
		l.Pin = p
	}
	return l
}

// pin matches a whole line: NAME, extras, operator, version, marker.
var pin = pattern.New(`^(` + name + `)\s*(\[[A-Za-z0-9._,\s-]*\])?\s*(={2,3})\s*([^\s;,]+)\s*(?:;(.*))?$`)

const (
	// name matches the name of a package or of an extra (PEP 508).
	name = `[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?`
	// inBrackets matches extras: names separated by commas.
	inBrackets = `\[\s*(?:` + name + `(?:\s*,\s*` + name + `)*)?\s*\]`
)

var extras = pattern.New(`^` + inBrackets + `$`)

// Package matches the name of a package with optional extras and without a version. Its first group
// is the name alone.
var Package = pattern.New(`^(` + name + `)(` + inBrackets + `)?$`)

// versions match the version after each operator. "==" accepts the versions of PEP 440 (its
// appendix B, without other forms that pip accepts but no index uses). "===" accepts any text.
var versions = map[string]func() *regexp.Regexp{
	"==": pattern.New(`(?i)^v?(?:[0-9]+!)?[0-9]+(?:\.[0-9]+)*(?:[-_.]?(?:a|b|c|rc|alpha|beta|pre|preview)[-_.]?[0-9]*)?` +
		`(?:-[0-9]+|[-_.]?(?:post|rev|r)[-_.]?[0-9]*)?(?:[-_.]?dev[-_.]?[0-9]*)?(?:\+[a-z0-9]+(?:[-_.][a-z0-9]+)*)?$`),
	"===": pattern.New(`.`),
}

// Normal returns the name of a package as in an index (PEP 503): "typing_extensions" and
// "Typing.Extensions" are the same package.
func Normal(name string) string { return strings.ToLower(separators().ReplaceAllString(name, "-")) }

var separators = pattern.New(`[-_.]+`)

// Hashed reports whether pip requires digests of all packages in a requirements file, because one
// line has a digest.
func Hashed(lines []Line) bool {
	for _, l := range lines {
		if l.Hashed {
			return true
		}
	}
	return false
}
