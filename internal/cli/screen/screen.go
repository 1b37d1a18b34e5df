// Package screen is what is shown on a terminal, or on a stream that is none: text that cannot pass for anything else, progress, and lines that are moved into sight.
package screen

import (
	"io"
	"os"

	"github.com/fatih/color"
	"golang.org/x/term"

	"orrery/internal/host"
	"orrery/internal/visible"
)

// Shown gives the way to a stream: on a terminal all that is written is shown as text, whatever a node, a file or an archive had to do with it.
func Shown(stream io.Writer) io.Writer {
	if host.IsTerminal(stream) {
		return visible.NewWriter(stream)
	}
	return stream
}

// Unshown gives the stream itself, for what is made of our own words only, with sequences for the terminal in it.
func Unshown(w io.Writer) io.Writer {
	if v, ok := w.(*visible.Writer); ok {
		return v.Raw()
	}
	return w
}

// Of gives the terminal behind a writer, if there is one that can move its cursor.
func Of(w io.Writer) (*os.File, bool) {
	f, ok := Unshown(w).(*os.File)
	return f, ok && host.IsTerminal(f) && os.Getenv("TERM") != "dumb"
}

// Paint colours a text for a terminal, which takes nothing else for colour.
func Paint(w io.Writer, text string, as ...color.Attribute) {
	if w = Unshown(w); host.IsTerminal(w) {
		text = color.New(as...).Sprint(visible.Line(text))
	}
	_, _ = io.WriteString(w, text) // whatever is written next meets the same error
}

// Flush writes what is left of a character that was begun.
func Flush(w io.Writer) {
	if v, ok := w.(*visible.Writer); ok {
		_ = v.Flush() // there is nobody left to tell
	}
}

// Width gives how many columns a terminal has; 0: it is none.
func Width(w io.Writer) int {
	if f, ok := Of(w); ok {
		if width, _, err := term.GetSize(int(f.Fd())); err == nil {
			return width
		}
	}
	return 0
}
