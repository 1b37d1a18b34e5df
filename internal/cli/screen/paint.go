package screen

import (
	"io"
	"os"
	"strings"

	"github.com/fatih/color"

	"orrery/internal/host"
	"orrery/internal/text/sanitize"
)

// A Style is what a text means, which its colour shows.
type Style int

// The styles of the program. No other code knows colours.
const (
	Plain Style = iota
	Good        // as it should be, or created
	Warn        // to look at, or changed
	Bad         // wrong, or destroyed
	Faint       // old, or less important
)

var attributes = map[Style]color.Attribute{Good: color.FgGreen, Warn: color.FgYellow, Bad: color.FgRed,
	Faint: color.Faint}

// Paint prints a text in the colour of a style if w shows colours, and without colour otherwise.
func Paint(w io.Writer, text string, as Style) {
	painted := styled(w, text, as)
	if painted != text {
		w = Raw(w)
	}
	_, _ = io.WriteString(w, painted) // the next write returns the same error
}

// styled returns a text with the colour of a style if w shows colours. Other control characters in it are
// then made visible, because it must be written to w unchanged.
func styled(w io.Writer, text string, as Style) string {
	if as == Plain || text == "" || !ShowsColours(w) {
		return text
	}
	c := color.New(attributes[as])
	c.EnableColor() // the library looks at standard output, whatever is written to
	return c.Sprint(sanitize.Line(text))
}

// ShowsColours reports whether a writer is a terminal, or a canvas for one, whose user wants colours.
func ShowsColours(w io.Writer) bool {
	if c, ok := w.(*Canvas); ok {
		return c.colours
	}
	return os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb" && host.IsTerminal(Raw(w))
}

// A Canvas stores what is printed for a terminal. It makes control characters visible, except the colours of
// Paint.
type Canvas struct {
	text    strings.Builder
	escaped *sanitize.Writer
	colours bool
}

// NewCanvas returns an empty canvas for a terminal.
func NewCanvas(of io.Writer) *Canvas {
	c := &Canvas{colours: ShowsColours(of)}
	c.escaped = sanitize.NewWriter(&c.text)
	return c
}

func (c *Canvas) Write(text []byte) (int, error) { return c.escaped.Write(text) }

// Lines returns the lines that were printed.
func (c *Canvas) Lines() []string {
	_ = c.escaped.Flush() // a Builder never fails
	return strings.Split(strings.TrimSuffix(c.text.String(), "\n"), "\n")
}

// truncatePainted is like Truncate for a text with colours, which take no columns.
func truncatePainted(text string, width int) string {
	if width <= 0 || !strings.Contains(text, "\x1b") {
		return Truncate(text, width)
	}
	columns, escape := 0, false
	for at, r := range text {
		switch {
		case r == '\x1b':
			escape = true
		case escape:
			escape = r != 'm'
		case columns == width-1 && hasMore(text[at+len(string(r)):]):
			return text[:at] + "…\x1b[0m"
		default:
			columns++
		}
	}
	return text
}

// hasMore reports whether a text has anything but colours.
func hasMore(text string) bool {
	for strings.HasPrefix(text, "\x1b[") {
		_, text, _ = strings.Cut(text, "m")
	}
	return text != ""
}
