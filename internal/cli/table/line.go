package table

import (
	"io"
	"strings"

	"orrery/internal/cli/screen"
)

// A line is text in parts, each with its own style.
type line struct {
	parts  []string
	styles []screen.Style
}

// newLine returns a line of at most width columns, or of any width if it is 0. A line that is cut has no
// styles, because no part says where it was cut.
func newLine(parts []string, styles []screen.Style, width int) line {
	whole := strings.Join(parts, "")
	if cut := screen.Truncate(whole, width); cut != whole && len(parts) > 1 {
		return line{[]string{cut}, []screen.Style{screen.Plain}}
	} else if len(parts) == 1 {
		return line{[]string{cut}, styles}
	}
	return line{parts, styles}
}

// print prints the line without its end. Spaces have no style.
func (l line) print(w io.Writer) {
	for i, part := range l.parts {
		text := strings.TrimRight(part, " ")
		screen.Paint(w, text, l.styles[i])
		screen.Paint(w, part[len(text):], screen.Plain)
	}
}

func (l line) String() string { return strings.Join(l.parts, "") }
