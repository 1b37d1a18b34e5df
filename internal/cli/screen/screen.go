// Package screen shows text on a terminal or another stream: control characters made visible,
// progress, and paging.
package screen

import (
	"io"
	"os"
	"time"

	"github.com/fatih/color"
	"github.com/vbauerster/mpb/v8"
	"golang.org/x/term"

	"orrery/internal/host"
	"orrery/internal/text/sanitize"
)

// Shown returns the way to a stream: on a terminal all that is written is shown as text, whatever a
// node, a file or an archive had to do with it.
func Shown(stream io.Writer) io.Writer {
	if host.IsTerminal(stream) {
		return sanitize.NewWriter(stream)
	}
	return stream
}

// Unshown returns the stream itself, for what is made of our own words only, with sequences for the
// terminal in it.
func Unshown(w io.Writer) io.Writer {
	if v, ok := w.(*sanitize.Writer); ok {
		return v.Raw()
	}
	return w
}

// A Terminal is what is written to a terminal by, perhaps through something that does not wait for
// who sits there.
type Terminal interface {
	io.Writer
	Fd() uintptr
}

// Of returns the terminal behind a writer, if there is one that can move its cursor.
func Of(w io.Writer) (Terminal, bool) {
	t, ok := Unshown(w).(Terminal)
	return t, ok && host.IsTerminal(t) && os.Getenv("TERM") != "dumb"
}

// newContainer returns a container of bars on a terminal, and what gives each of them its width.
func newContainer(t Terminal, width int) (*mpb.Progress, mpb.BarOption) {
	options := []mpb.ContainerOption{mpb.WithOutput(t), mpb.WithRefreshRate(100 * time.Millisecond)}
	if _, direct := t.(*os.File); !direct { // what is not a file is not known for a terminal there
		options = append(options, mpb.WithWidth(Width(t)), mpb.WithAutoRefresh())
	}
	return mpb.New(options...), mpb.BarWidth(width)
}

// Paint colours a text for a terminal, which takes nothing else for colour.
func Paint(w io.Writer, text string, as ...color.Attribute) {
	if w = Unshown(w); host.IsTerminal(w) {
		text = color.New(as...).Sprint(sanitize.Line(text))
	}
	_, _ = io.WriteString(w, text) // whatever is written next meets the same error
}

// Flush writes what is left of a character that was begun, and waits until all is where it is wanted.
func Flush(w io.Writer) {
	if v, ok := w.(*sanitize.Writer); ok {
		_ = v.Flush() // there is nobody left to tell
	}
	if b, ok := Unshown(w).(interface{ Flush() }); ok {
		b.Flush()
	}
}

// Width returns how many columns a terminal has; 0: it is none.
func Width(w io.Writer) int {
	if f, ok := Of(w); ok {
		if width, _, err := term.GetSize(int(f.Fd())); err == nil {
			return width
		}
	}
	return 0
}
