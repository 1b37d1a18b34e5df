package distro

import (
	"iter"
	"strings"
)

// Paragraphs reads deb822(5), the form in which apt and dpkg keep what they know: paragraphs of
// fields, by name in lower case. Lines of a field after its first are below that. Each paragraph
// comes with its text.
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
					continued = "" // how the form writes an empty line
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
