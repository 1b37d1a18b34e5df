package distro

import (
	"iter"
	"strings"
)

// Paragraphs parses deb822(5), the format of the files of apt and dpkg. It yields each paragraph as
// fields by lower-case name, together with the paragraph's text. Continuation lines of a field are
// appended to its first line.
func Paragraphs(text string) iter.Seq2[map[string]string, string] {
	return func(yield func(map[string]string, string) bool) {
		fields, last, begin, at := map[string]string{}, "", 0, 0
		var value strings.Builder
		end := func() {
			if value.Len() > 0 {
				fields[last] = value.String()
			}
			value.Reset()
		}
		for line := range strings.Lines(text) {
			start := at
			at += len(line)
			line = strings.TrimRight(line, "\n")
			switch {
			case strings.TrimSpace(line) == "":
				if end(); len(fields) > 0 && !yield(fields, text[begin:start]) {
					return
				}
				fields, last, begin = map[string]string{}, "", at
			case line[0] == '#':
			case line[0] == ' ' || line[0] == '\t':
				continued := strings.TrimSpace(line)
				if continued == "." {
					continued = "" // how the format writes an empty line
				}
				value.WriteString("\n" + continued)
			default:
				end()
				key, first, _ := strings.Cut(line, ":")
				last = strings.ToLower(strings.TrimSpace(key))
				value.WriteString(strings.TrimSpace(first))
			}
		}
		if end(); len(fields) > 0 {
			yield(fields, text[begin:])
		}
	}
}
