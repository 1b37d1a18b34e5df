package screen

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"time"

	"golang.org/x/sys/unix"
	"golang.org/x/term"

	"orrery/internal/host"
)

// A frame is what is shown at one time, or an error.
type frame struct {
	lines []string
	err   error
}

// Watch repeatedly shows the lines that look returns for a width, in place on a terminal. It
// continues until ctx ends or the user types q. Later errors are shown in place of the lines, but
// Watch returns the first error if look fails at once.
func Watch(ctx context.Context, in io.Reader, terminal Terminal, every time.Duration,
	look func(width int) ([]string, error)) error {
	resized := make(chan os.Signal, 1)
	signal.Notify(resized, unix.SIGWINCH)
	defer signal.Stop(resized)
	var keys <-chan string // stays nil without a terminal for input
	if f, ok := in.(*os.File); ok {
		if typed, letGo, err := host.ReadKeys(f); err == nil {
			defer letGo()
			keys = typed
		}
	}
	ctx, end := context.WithCancel(ctx)
	defer end()
	frames := make(chan frame)
	go show(ctx, terminal, every, look, frames)
	p := pager{}
	defer io.WriteString(terminal, "\r\n") //nolint:errcheck // nothing can be done about a terminal that is gone
	for {
		select {
		case f := <-frames:
			if f.err != nil && p.lines == nil {
				return f.err
			}
			p.lines = f.lines
		case key, typed := <-keys:
			if !typed {
				keys = nil
			}
			if key == "q" {
				return nil
			}
			p.move(key)
		case <-resized:
		case <-ctx.Done():
			return nil
		}
		width, height, err := term.GetSize(int(terminal.Fd()))
		if err != nil {
			return err
		}
		if _, err := io.WriteString(terminal, p.draw(width, height)); err != nil {
			return err
		}
	}
}

// show repeatedly calls look and sends the frames.
func show(ctx context.Context, terminal Terminal, every time.Duration, look func(width int) ([]string, error),
	to chan<- frame) {
	for ctx.Err() == nil {
		lines, err := look(Width(terminal))
		select {
		case to <- frame{lines, err}:
		case <-ctx.Done():
		}
		_ = host.Sleep(ctx, every)
	}
}

// A pager shows as many lines as a terminal has. The first line is always shown, and the others can
// be scrolled.
type pager struct {
	lines []string
	top   int // first line shown below the heading
	page  int // number of lines shown
}

// move scrolls according to a key.
func (p *pager) move(key string) {
	switch key {
	case "\x1b[A", "\x1bOA", "k":
		p.top--
	case "\x1b[B", "\x1bOB", "j":
		p.top++
	case "\x1b[5~", "b":
		p.top -= p.page
	case "\x1b[6~", " ":
		p.top += p.page
	case "\x1b[H", "g":
		p.top = 0
	case "\x1b[F", "G":
		p.top = len(p.lines)
	}
}

// show returns the lines that fit on a terminal of the given height. If some do not fit, the last
// line says so.
func (p *pager) show(height int) []string {
	if len(p.lines) <= height || height < 3 {
		p.top, p.page = 0, height
		return p.lines[:min(len(p.lines), max(height, 0))]
	}
	p.page = height - 2
	rest := p.lines[1:]
	p.top = max(0, min(p.top, len(rest)-p.page))
	shown := append([]string{p.lines[0]}, rest[p.top:p.top+p.page]...)
	return append(shown, fmt.Sprintf("lines %d to %d of %d; arrows, PgUp and PgDn scroll, q quits", p.top+1,
		p.top+p.page, len(rest)))
}

// draw returns the output for a terminal. Each line replaces the former one in its place, and the
// rest is cleared.
func (p *pager) draw(width, height int) string {
	var b strings.Builder
	b.WriteString("\x1b[H")
	for i, line := range p.show(height) {
		if i > 0 {
			b.WriteString("\r\n")
		}
		b.WriteString("\x1b[K" + truncatePainted(line, width))
	}
	b.WriteString("\x1b[J")
	return b.String()
}

// Truncate returns the part of a text that fits into a width, or all of it if width is 0.
func Truncate(text string, width int) string {
	if runes := []rune(text); width > 0 && len(runes) > width {
		return string(runes[:width-1]) + "…"
	}
	return text
}
