package screen

import (
	"errors"
	"io"
	"os"
	"sync"

	"orrery/internal/host"
	"orrery/internal/problem"
)

// ErrorTracker is a stream that remembers write errors, because most code that prints ignores them.
type ErrorTracker struct {
	to    io.Writer
	mutex sync.Mutex
	err   error
}

// TrackErrors returns a writer to a file or a pipe that remembers errors. It returns other streams
// unchanged.
func TrackErrors(stream io.Writer) io.Writer {
	if f, ok := stream.(*os.File); ok && !host.IsTerminal(f) {
		return &ErrorTracker{to: f}
	}
	return stream
}

// Write writes p, unless an earlier write has failed.
func (c *ErrorTracker) Write(p []byte) (n int, err error) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	if c.err == nil {
		n, c.err = c.to.Write(p)
	}
	return n, c.err
}

// LostOutput returns a problem if a write to the stream has failed.
func LostOutput(stream io.Writer) error {
	c, ok := stream.(*ErrorTracker)
	if !ok {
		return nil
	}
	c.mutex.Lock()
	defer c.mutex.Unlock()
	if c.err == nil {
		return nil
	}
	return problem.New(problem.Unable, "not all of the output could be written").Because(c.err).
		Try("check where the output goes; orrery journal shows what was done")
}

// OrLostOutput returns the error of a verb or, if that has only an exit status, the error that its output
// was lost.
func OrLostOutput(err error, stream io.Writer) error {
	lost := LostOutput(stream)
	var said problem.Status
	if lost != nil && (err == nil || errors.As(err, &said) || errors.Is(err, errors.Unwrap(lost))) {
		return lost
	}
	return err
}
