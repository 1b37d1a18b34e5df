package cli

import (
	"io"
	"os"

	"github.com/fatih/color"
	"github.com/spf13/cobra"

	"orrery/internal/host"
	"orrery/internal/visible"
)

// shown gives the way to a stream: on a terminal all that is written is shown as text, whatever a node, a file or an archive had to do with it.
func shown(stream io.Writer) io.Writer {
	if host.IsTerminal(stream) {
		return visible.NewWriter(stream)
	}
	return stream
}

// unshown gives the stream itself, for what is made of our own words only, with sequences for the terminal in it.
func unshown(w io.Writer) io.Writer {
	if v, ok := w.(*visible.Writer); ok {
		return v.Raw()
	}
	return w
}

// screen gives the terminal behind a writer, if there is one that can move its cursor.
func screen(w io.Writer) (*os.File, bool) {
	f, ok := unshown(w).(*os.File)
	return f, ok && host.IsTerminal(f) && os.Getenv("TERM") != "dumb"
}

// paint colours a text for a terminal, which takes nothing else for colour.
func paint(w io.Writer, text string, as ...color.Attribute) {
	if w = unshown(w); host.IsTerminal(w) {
		text = color.New(as...).Sprint(visible.Line(text))
	}
	_, _ = io.WriteString(w, text) // whatever is written next meets the same error
}

// raw lets what nodes print reach the terminal as it is.
func (a *app) raw() { a.out, a.err = unshown(a.out), unshown(a.err) }

func rawFlag(c *cobra.Command, raw *bool) {
	c.Flags().BoolVar(raw, "raw", false, "pass on terminal escape sequences, such as colours (default: show them as \\x1b)")
}

// flush writes what is left of a character that was begun.
func flush(w io.Writer) {
	if v, ok := w.(*visible.Writer); ok {
		_ = v.Flush() // there is nobody left to tell
	}
}
