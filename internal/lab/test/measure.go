package test

import (
	"context"
	"io"
	"time"

	"orrery/internal/host"
	"orrery/internal/lab/place"
)

// A Span is when a measured command ran.
type Span struct{ Began, Ended time.Time }

// Measure runs a program of the layer in the near place. It is there and waits before the trial
// comes to the barrier, so that all copies begin within a millisecond or two.
func (t *Trial) Measure(ctx context.Context, program string, args ...string) (out []byte, span Span, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	gate, open := io.Pipe()
	// A command that is ended while it waits is waited for until its input has ended, too.
	defer context.AfterFunc(ctx, func() { _ = open.Close() })()
	ready := make(chan struct{})
	done := make(chan error, 1)
	command := append([]string{"/bin/sh", "-c", `echo >&2; read -r go && exec "$@" </dev/null`, "sh"},
		t.Near.Command(program, args...)...)
	go func() {
		var err error
		out, err = host.Output(ctx, t.Near, host.Command{Args: command, Stdin: gate, Stderr: &signal{ready: ready}},
			place.Most)
		_ = gate.Close() // whoever writes to it does not wait
		done <- err
	}()
	select {
	case <-ready:
	case err := <-done:
		return nil, span, err
	}
	if err := t.Barrier(ctx); err != nil {
		cancel()
		<-done //nolint:errcheck // it was ended
		return nil, span, err
	}
	span.Began = time.Now()
	_, _ = io.WriteString(open, "go\n")
	_ = open.Close()
	err = <-done
	span.Ended = time.Now()
	return out, span, err
}

// signal says when something is written for the first time, and lets all of it go: a RunError keeps
// the end of it.
type signal struct {
	ready chan struct{}
	said  bool
}

func (s *signal) Write(p []byte) (int, error) {
	if !s.said {
		s.said = true
		close(s.ready)
	}
	return len(p), nil
}

// Record measures a program, and keeps what it printed in the bundle.
func (t *Trial) Record(ctx context.Context, file, program string, args ...string) ([]byte, error) {
	out, _, err := t.Measure(ctx, program, args...)
	if keep := t.Keep(file, out); keep != nil {
		return nil, keep
	}
	return out, err
}
