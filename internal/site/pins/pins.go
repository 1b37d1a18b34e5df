// Package pins reads requirements files of pip: which Python packages they pin, to which versions,
// and for which systems. It knows the lines that Orrery takes, which are those that pin one version
// (pip's "Requirements File Format", PEP 440, PEP 508).
package pins

import (
	"regexp"
	"strings"

	"orrery/internal/text/pattern"
)

// A Line is one of a requirements file, continued lines joined.
type Line struct {
	Number int    // the first in the file
	Text   string // without comment and hashes
	Hashed bool   // whether it says digests of files
	Hashes string // as they are written, with --hash=
	Pin    *Pin   // nil: the line does not pin a package to one version
	Wrong  string // Extras or Marker, if that alone keeps pip from reading the line as one that pins a package
}

// What pip may be unable to read of a line, in words for messages.
const (
	Extras = "extras"
	Marker = "a marker"
)

// A Pin says which version of a package is wanted.
type Pin struct {
	Name    string // as it is written
	Extras  string // with brackets, as they are written; "": none
	Version string
	Marker  string // on which systems, "": on all
}

// Lines returns the lines of a requirements file that are not empty.
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

// comment begins at a "#" with nothing or white space before it, as for pip: "six==1.16.0#c" has none.
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

// pin is the whole of a line: NAME, extras, operator, version, marker.
var pin = pattern.New(`^(` + name + `)\s*(\[[A-Za-z0-9._,\s-]*\])?\s*(={2,3})\s*([^\s;,]+)\s*(?:;(.*))?$`)

const (
	// name is that of a package or of an extra (PEP 508).
	name = `[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?`
	// inBrackets are extras: names with commas between them.
	inBrackets = `\[\s*(?:` + name + `(?:\s*,\s*` + name + `)*)?\s*\]`
)

var extras = pattern.New(`^` + inBrackets + `$`)

// Package is the name of a package, which may have extras, without a version. Its first group is
// the name alone.
var Package = pattern.New(`^(` + name + `)(` + inBrackets + `)?$`)

// versions are those that each operator takes: "==" one of PEP 440 (its appendix B, without what
// pip takes besides and no index has), "===" any text at all.
var versions = map[string]func() *regexp.Regexp{
	"==": pattern.New(`(?i)^v?(?:[0-9]+!)?[0-9]+(?:\.[0-9]+)*(?:[-_.]?(?:a|b|c|rc|alpha|beta|pre|preview)[-_.]?[0-9]*)?` +
		`(?:-[0-9]+|[-_.]?(?:post|rev|r)[-_.]?[0-9]*)?(?:[-_.]?dev[-_.]?[0-9]*)?(?:\+[a-z0-9]+(?:[-_.][a-z0-9]+)*)?$`),
	"===": pattern.New(`.`),
}

// Normal returns the name of a package as an index has it (PEP 503): "typing_extensions" and
// "Typing.Extensions" are one.
func Normal(name string) string { return strings.ToLower(separators().ReplaceAllString(name, "-")) }

var separators = pattern.New(`[-_.]+`)

// Hashed reports whether pip wants digests of all that it installs by a requirements file, because
// one is in it.
func Hashed(lines []Line) bool {
	for _, l := range lines {
		if l.Hashed {
			return true
		}
	}
	return false
}
