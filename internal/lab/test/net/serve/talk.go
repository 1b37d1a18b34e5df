package serve

import (
	"bytes"
	"context"
	"os"
	"time"

	"orrery/internal/host"
	"orrery/internal/lab/place"
	"orrery/internal/problem"
	"orrery/internal/strict/jsonlimit"
)

// A Talk is with a program that runs in a place: it takes lines and gives lines.
type Talk struct {
	where string
	in    *os.File
	lines chan []byte
	ended chan struct{}
	err   error // how it ended, once it has
	stop  context.CancelFunc
}

// Begin starts a program in a place, to talk with.
func Begin(ctx context.Context, at *place.Place, args []string) (*Talk, error) {
	// A pipe of the system, and not one of this process: so nobody copies, and nobody is left waiting
	// to copy when the program has died.
	theirs, in, err := os.Pipe()
	if err != nil {
		return nil, problem.New(problem.Failed, "no pipe to %s", args[0]).At(at.Name).Because(err)
	}
	ctx, stop := context.WithCancel(ctx)
	t := &Talk{where: at.Name, in: in, lines: make(chan []byte, 64), ended: make(chan struct{}), stop: stop}
	go func() {
		defer close(t.ended)
		t.err = at.Run(ctx, host.Command{Args: args, Stdin: theirs, Stdout: host.NewLines(maxAnswerBytes, t.heard)})
		_ = theirs.Close()
	}()
	return t, nil
}

// Tell sends a line.
func (t *Talk) Tell(line []byte) error {
	_, err := t.in.Write(append(line, '\n'))
	if err == nil {
		return nil
	}
	select {
	case <-t.ended:
		return t.gone()
	case <-time.After(time.Second):
		return problem.New(problem.Failed, "the program takes no orders").At(t.where).Because(err)
	}
}

// Line waits for a line.
func (t *Talk) Line(ctx context.Context, most time.Duration) ([]byte, error) {
	late := time.NewTimer(most)
	defer late.Stop()
	select {
	case line := <-t.lines:
		return line, nil
	case <-t.ended:
		return nil, t.gone()
	case <-late.C:
		return nil, problem.New(problem.Failed, "the program has not answered within %v", most).At(t.where).
			Try("is the host overloaded?")
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// Answer waits for a line, and reads it as JSON.
func (t *Talk) Answer(ctx context.Context, most time.Duration, into any) error {
	line, err := t.Line(ctx, most)
	if err != nil {
		return err
	}
	if err := jsonlimit.Unmarshal(line, into); err != nil {
		return problem.New(problem.Failed, "the program answers %.100q", line).At(t.where).Because(err)
	}
	return nil
}

func (t *Talk) gone() error {
	if t.err == nil {
		return problem.New(problem.Failed, "the program has ended before its time").At(t.where)
	}
	return t.err
}

// Close ends the program: by the end of its input, or, if it does not heed that, by force. It may
// be called again.
func (t *Talk) Close() {
	_ = t.in.Close()
	select {
	case <-t.ended:
	case <-time.After(time.Second):
	}
	t.stop()
	<-t.ended
}

// maxAnswerBytes is the length of an answer at most.
const maxAnswerBytes = 1 << 20

// heard takes a line.
func (t *Talk) heard(line []byte) error {
	select {
	case t.lines <- bytes.Clone(bytes.TrimSuffix(line, []byte("\n"))):
	default: // nobody asked for so many: the program is not the one that is meant
	}
	return nil
}
