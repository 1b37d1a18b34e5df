package host

import (
	"context"
	"errors"
	"io"
	"net"
	"strings"
	"testing"
	"time"
)

// A seat is a terminal and a line, with the test at the other end of both.
type seat struct {
	*testing.T
	keys   *io.PipeWriter
	screen *io.PipeReader
	far    net.Conn
	gone   chan struct{}
	end    context.CancelCauseFunc
	over   chan error
	ended  bool
}

func sit(t *testing.T) *seat {
	s := &seat{T: t, gone: make(chan struct{}), over: make(chan error, 1)}
	keys, typed := io.Pipe()
	shown, screen := io.Pipe()
	near, far := net.Pipe()
	s.keys, s.screen, s.far = typed, shown, far
	ctx, end := context.WithCancelCause(t.Context())
	s.end = end
	go func() {
		ended, err := (&Terminal{Keys: keys, Screen: screen, Gone: s.gone}).AttachConsole(ctx, near)
		s.ended = ended
		screen.Close()
		s.over <- err
	}()
	t.Cleanup(func() { far.Close(); keys.Close(); end(nil) })
	return s
}

func (s *seat) want(from io.Reader, text string) {
	s.Helper()
	got := make([]byte, len(text))
	if _, err := io.ReadFull(from, got); err != nil || string(got) != text {
		s.Fatalf("%q, %v; want %q", got, err, text)
	}
}

func (s *seat) wait() error {
	s.Helper()
	select {
	case err := <-s.over:
		return err
	case <-time.After(time.Minute):
		s.Fatal("it does not end")
		return nil
	}
}

// TestConsole checks that output of the line is shown unchanged, and that each key is sent to the
// line except Escape and the keys after it.
func TestConsole(t *testing.T) {
	s := sit(t)
	go s.far.Write([]byte("login\x1b[6n: \xff")) //nolint:errcheck // it is read below
	s.want(s.screen, "login\x1b[6n: \xff")
	go s.keys.Write([]byte("root\r\x03")) //nolint:errcheck // it is read below
	s.want(s.far, "root\r\x03")
	go s.keys.Write([]byte("bye\x1dreboot\r")) //nolint:errcheck // it is read below
	s.want(s.far, "bye")
	if rest, err := io.ReadAll(s.far); err != nil || len(rest) > 0 {
		t.Errorf("behind the escape %q was typed: %v", rest, err)
	}
	if err := s.wait(); err != nil || s.ended {
		t.Errorf("who leaves: %v, ended %v", err, s.ended)
	}
}

// TestConsoleEnds checks the end of the line, the terminal, the context and the user's input.
func TestConsoleEnds(t *testing.T) {
	tired := errors.New("tired")
	for what, c := range map[string]struct {
		do    func(*seat)
		ended bool
		err   string
	}{
		"the machine ends":  {func(s *seat) { s.far.Close() }, true, ""},
		"the terminal goes": {func(s *seat) { close(s.gone) }, false, "the terminal was closed"},
		"somebody ends it":  {func(s *seat) { s.end(tired) }, false, "tired"},
		"no more keys":      {func(s *seat) { s.keys.Close() }, false, ""},
		"the keys fail":     {func(s *seat) { s.keys.CloseWithError(tired) }, false, "tired"},
	} {
		s := sit(t)
		go s.far.Write([]byte("x")) //nolint:errcheck // it is read below
		s.want(s.screen, "x")
		c.do(s)
		err := s.wait()
		if s.ended != c.ended || (err == nil) != (c.err == "") || err != nil && !strings.Contains(err.Error(), c.err) {
			t.Errorf("%s: ended %v, %v", what, s.ended, err)
		}
		if n, err := s.far.Write([]byte("y")); err == nil {
			t.Errorf("%s: the line takes %d bytes more", what, n)
		}
	}
}
