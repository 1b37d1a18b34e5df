package test

import (
	"context"
	"io"
	"time"

	"orrery/internal/host"
	"orrery/internal/lab/place"
)

// A Span is the time from the start to the end of a measured command.
type Span struct{ Began, Ended time.Time }

// Measure runs a program of the layer in the near place. The command is started before the trial
// reaches the barrier and then waits, so that all copies begin within a millisecond or two.
func (t *Trial) Measure(ctx context.Context, program string, args ...string) (out []byte, span Span, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	gate, open := io.Pipe()
	// Close the input: a command that is cancelled while it waits ends only when its input has
	// ended.
	defer context.AfterFunc(ctx, func() { _ = open.Close() })()
	ready := make(chan struct{})
	done := make(chan error, 1)
	command := append([]string{"/bin/sh", "-c", `echo >&2; read -r go && exec "$@" </dev/null`, "sh"},
		t.Near.Command(program, args...)...)
	go func() {
		var err error
		out, err = host.Output(ctx, t.Near, host.Command{Args: command, Stdin: gate, Stderr: &signal{ready: ready}},
			place.MaxOutputBytes)
		_ = gate.Close() // so that a writer does not block
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

// signal closes ready at the first write and discards all data. RunError keeps the end of the
// output.
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

// Record measures a program and stores its output in the bundle.
func (t *Trial) Record(ctx context.Context, file, program string, args ...string) ([]byte, error) {
	out, _, err := t.Measure(ctx, program, args...)
	if keep := t.Keep(file, out); keep != nil {
		return nil, keep
	}
	return out, err
}
