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

// A frame is what is shown at a time, or what went wrong.
type frame struct {
	lines []string
	err   error
}

// Watch shows on a terminal, in place, what look gives for a width, again and again until ctx ends
// or q is typed. An error is shown in its place, but ends it if it is the first.
func Watch(ctx context.Context, in io.Reader, terminal Terminal, every time.Duration,
	look func(width int) ([]string, error)) error {
	resized := make(chan os.Signal, 1)
	signal.Notify(resized, unix.SIGWINCH)
	defer signal.Stop(resized)
	var keys <-chan string // without a terminal to type at nobody does
	if f, ok := in.(*os.File); ok {
		if typed, letGo, err := host.Keys(f); err == nil {
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

// show looks again and again.
func show(ctx context.Context, terminal Terminal, every time.Duration, look func(width int) ([]string, error),
	to chan<- frame) {
	for ctx.Err() == nil {
		lines, err := look(Width(terminal))
		select {
		case to <- frame{lines, err}:
		case <-ctx.Done():
		}
		_ = host.Pause(ctx, every)
	}
}

// A pager shows as many lines as a terminal has, the first always, and lets others come into sight.
type pager struct {
	lines []string
	top   int // the first line after the heading that is shown
	page  int // lines that are shown
}

// move lets a key move what is shown.
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

// show returns what a terminal of a height has room for. Where that is not all, the last line says so.
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

// draw returns what a terminal is sent: each line in the place of what was there, and nothing beyond the last.
func (p *pager) draw(width, height int) string {
	var b strings.Builder
	b.WriteString("\x1b[H")
	for i, line := range p.show(height) {
		if i > 0 {
			b.WriteString("\r\n")
		}
		b.WriteString("\x1b[K" + Cut(line, width))
	}
	b.WriteString("\x1b[J")
	return b.String()
}

// Cut returns as much of a text as a width holds; 0: all.
func Cut(text string, width int) string {
	if runes := []rune(text); width > 0 && len(runes) > width {
		return string(runes[:width-1]) + "…"
	}
	return text
}
