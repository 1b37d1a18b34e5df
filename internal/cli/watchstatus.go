package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"time"

	"golang.org/x/sys/unix"
	"golang.org/x/term"

	"orrery/internal/host"
	"orrery/internal/problem"
	"orrery/internal/visible"
)

// everySecond is how often status --watch looks.
const everySecond = time.Second

// watchStatus shows how the nodes are again and again, until it is interrupted: on a terminal in place, else one below the other.
func (a *app) watchStatus(ctx context.Context, how *survey) error {
	terminal, ok := screen(a.out)
	if !ok || how.asJSON {
		return a.repeatStatus(ctx, how)
	}
	resized := make(chan os.Signal, 1)
	signal.Notify(resized, unix.SIGWINCH)
	defer signal.Stop(resized)
	var keys <-chan string // without a terminal to type at nobody does
	if in, ok := a.in.(*os.File); ok {
		if typed, letGo, err := host.Keys(in); err == nil {
			defer letGo()
			keys = typed
		}
	}
	ctx, end := context.WithCancel(ctx)
	defer end()
	frames := make(chan frame)
	go a.frames(ctx, how, terminal, frames)
	p := pager{}
	defer io.WriteString(terminal, "\r\n") //nolint:errcheck // there is nothing else to be done about a terminal that is gone
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

// repeatStatus prints how the nodes are again and again.
func (a *app) repeatStatus(ctx context.Context, how *survey) error {
	for {
		err := a.survey(ctx, how, &table{out: a.out})
		var status problem.Status
		if err != nil && !errors.As(err, &status) {
			return err
		}
		if r, ok := a.out.(*reply); ok {
			r.finish(err)
		} else {
			fmt.Fprintln(a.out)
		}
		select {
		case <-time.After(everySecond):
		case <-ctx.Done():
			return nil
		}
	}
}

// A frame is what is shown at a time, or what went wrong.
type frame struct {
	lines []string
	err   error
}

// frames looks again and again; what goes wrong is shown in its place.
func (a *app) frames(ctx context.Context, how *survey, terminal *os.File, to chan<- frame) {
	for ctx.Err() == nil {
		var text bytes.Buffer
		b := a.another()
		b.out, b.err = &text, &text
		width, _, _ := term.GetSize(int(terminal.Fd()))
		err := b.survey(ctx, how, &table{out: &text, width: width})
		var status problem.Status
		if errors.As(err, &status) {
			err = nil
		}
		if err != nil {
			printError(&text, err)
		}
		lines := strings.Split(strings.TrimSuffix(visible.Text(text.String()), "\n"), "\n")
		select {
		case to <- frame{lines, err}:
		case <-ctx.Done():
		}
		select {
		case <-time.After(everySecond):
		case <-ctx.Done():
		}
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

// show gives what a terminal of a height has room for. Where that is not all, the last line says so.
func (p *pager) show(height int) []string {
	if len(p.lines) <= height || height < 3 {
		p.top, p.page = 0, height
		return p.lines[:min(len(p.lines), max(height, 0))]
	}
	p.page = height - 2
	rest := p.lines[1:]
	p.top = max(0, min(p.top, len(rest)-p.page))
	shown := append([]string{p.lines[0]}, rest[p.top:p.top+p.page]...)
	return append(shown, fmt.Sprintf("lines %d to %d of %d; arrows, PgUp and PgDn show others, q ends", p.top+1, p.top+p.page, len(rest)))
}

// draw gives what a terminal is sent: each line in the place of what was there, and nothing beyond the last.
func (p *pager) draw(width, height int) string {
	var b strings.Builder
	b.WriteString("\x1b[H")
	for i, line := range p.show(height) {
		if i > 0 {
			b.WriteString("\r\n")
		}
		b.WriteString("\x1b[K" + cut(line, width))
	}
	b.WriteString("\x1b[J")
	return b.String()
}
