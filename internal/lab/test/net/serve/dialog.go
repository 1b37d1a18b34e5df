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

// A Dialog is a dialogue with a program in a place: it reads lines and answers with lines.
type Dialog struct {
	where string
	in    *os.File
	lines chan []byte
	ended chan struct{}
	err   error // how the program ended; valid once ended is closed
	stop  context.CancelFunc
}

// StartDialog starts a program in a place for a dialogue.
func StartDialog(ctx context.Context, at *place.Place, args []string) (*Dialog, error) {
	// Use a pipe of the operating system, not io.Pipe: no goroutine copies the data, so none is
	// left blocked when the program has died.
	theirs, in, err := os.Pipe()
	if err != nil {
		return nil, problem.New(problem.Failed, "a pipe to %s cannot be created", args[0]).At(at.Name).Because(err)
	}
	ctx, stop := context.WithCancel(ctx)
	t := &Dialog{where: at.Name, in: in, lines: make(chan []byte, 64), ended: make(chan struct{}), stop: stop}
	go func() {
		defer close(t.ended)
		t.err = at.Run(ctx, host.Command{Args: args, Stdin: theirs,
			Stdout: host.NewLineWriter(maxAnswerBytes, t.receiveLine)})
		_ = theirs.Close()
	}()
	return t, nil
}

// Send sends a line.
func (t *Dialog) Send(line []byte) error {
	_, err := t.in.Write(append(line, '\n'))
	if err == nil {
		return nil
	}
	select {
	case <-t.ended:
		return t.endedError()
	case <-time.After(time.Second):
		return problem.New(problem.Failed, "the program accepts no commands").At(t.where).Because(err)
	}
}

// ReadLine waits for a line.
func (t *Dialog) ReadLine(ctx context.Context, most time.Duration) ([]byte, error) {
	late := time.NewTimer(most)
	defer late.Stop()
	select {
	case line := <-t.lines:
		return line, nil
	case <-t.ended:
		return nil, t.endedError()
	case <-late.C:
		return nil, problem.New(problem.Failed, "the program did not answer within %v", most).At(t.where).
			Try("check the load of the host")
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// ReadJSON waits for a line and decodes it as JSON.
func (t *Dialog) ReadJSON(ctx context.Context, most time.Duration, into any) error {
	line, err := t.ReadLine(ctx, most)
	if err != nil {
		return err
	}
	if err := jsonlimit.Unmarshal(line, into); err != nil {
		return problem.New(problem.Failed, "the program answered %.100q", line).At(t.where).Because(err)
	}
	return nil
}

func (t *Dialog) endedError() error {
	if t.err == nil {
		return problem.New(problem.Failed, "the program ended prematurely").At(t.where)
	}
	return t.err
}

// Close closes the program's input, and kills the program if it does not end. It may be called more
// than once.
func (t *Dialog) Close() {
	_ = t.in.Close()
	select {
	case <-t.ended:
	case <-time.After(time.Second):
	}
	t.stop()
	<-t.ended
}

// maxAnswerBytes limits the length of an answer.
const maxAnswerBytes = 1 << 20

// receiveLine receives a line.
func (t *Dialog) receiveLine(line []byte) error {
	select {
	case t.lines <- bytes.Clone(bytes.TrimSuffix(line, []byte("\n"))):
	default: // drop it: a program that sends so many unrequested lines is not the expected one
	}
	return nil
}
