// Package screen shows text on a terminal or another stream. It makes control characters visible,
// shows progress, and has a pager.
package screen

import (
	"io"
	"os"
	"time"

	"github.com/vbauerster/mpb/v8"
	"golang.org/x/term"

	"orrery/internal/host"
	"orrery/internal/text/sanitize"
)

// Escaped returns a writer for a stream. On a terminal it makes control characters visible, since
// text may come from a node, a file or an archive.
func Escaped(stream io.Writer) io.Writer {
	if host.IsTerminal(stream) {
		return sanitize.NewWriter(stream)
	}
	return stream
}

// Raw returns the stream itself, for output that consists only of Orrery's own text and
// contains escape sequences.
func Raw(w io.Writer) io.Writer {
	switch v := w.(type) {
	case *sanitize.Writer:
		return v.Raw()
	case *Canvas:
		return v.escaped.Raw()
	}
	return w
}

// A Terminal is a writer to a terminal. It may be a Writer of package backlog, which does not wait
// for the user.
type Terminal interface {
	io.Writer
	Fd() uintptr
}

// TerminalOf returns the terminal behind a writer, if there is one that can move its cursor.
func TerminalOf(w io.Writer) (Terminal, bool) {
	t, ok := Raw(w).(Terminal)
	return t, ok && host.IsTerminal(t) && os.Getenv("TERM") != "dumb"
}

// newContainer returns a container of bars on a terminal, and the option that sets the width of
// each bar.
func newContainer(t Terminal, width int) (*mpb.Progress, mpb.BarOption) {
	options := []mpb.ContainerOption{mpb.WithOutput(t), mpb.WithRefreshRate(100 * time.Millisecond)}
	if _, direct := t.(*os.File); !direct { // the library recognizes only files as terminals
		options = append(options, mpb.WithWidth(Width(t)), mpb.WithAutoRefresh())
	}
	return mpb.New(options...), mpb.BarWidth(width)
}

// Flush writes the rest of an incomplete character, and waits until all output is written.
func Flush(w io.Writer) {
	if v, ok := w.(*sanitize.Writer); ok {
		_ = v.Flush() // nobody could be told
	}
	if b, ok := Raw(w).(interface{ Flush() }); ok {
		b.Flush()
	}
}

// Width returns the number of columns of a terminal, or 0 if w is not a terminal.
func Width(w io.Writer) int {
	if f, ok := TerminalOf(w); ok {
		if width, _, err := term.GetSize(int(f.Fd())); err == nil {
			return width
		}
	}
	return 0
}
