package screen

import (
	"errors"
	"io"
	"os"
	"sync"

	"orrery/internal/host"
	"orrery/internal/problem"
)

// Checked is a stream that remembers write errors, because most code that prints ignores them.
type Checked struct {
	to    io.Writer
	mutex sync.Mutex
	err   error
}

// Check returns a writer to a file or a pipe that remembers errors. It returns other streams
// unchanged.
func Check(stream io.Writer) io.Writer {
	if f, ok := stream.(*os.File); ok && !host.IsTerminal(f) {
		return &Checked{to: f}
	}
	return stream
}

// Write writes p, unless an earlier write has failed.
func (c *Checked) Write(p []byte) (n int, err error) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	if c.err == nil {
		n, c.err = c.to.Write(p)
	}
	return n, c.err
}

// Lost returns a problem if a write to the stream has failed.
func Lost(stream io.Writer) error {
	c, ok := stream.(*Checked)
	if !ok {
		return nil
	}
	c.mutex.Lock()
	defer c.mutex.Unlock()
	if c.err == nil {
		return nil
	}
	return problem.New(problem.Unable, "not all of the output could be written").Because(c.err).
		Try("see where it goes; orrery journal tells what was done")
}

// OrLost returns the error of a verb or, if that has only an exit status, the error that its output
// was lost.
func OrLost(err error, stream io.Writer) error {
	lost := Lost(stream)
	var said problem.Status
	if lost != nil && (err == nil || errors.As(err, &said) || errors.Is(err, errors.Unwrap(lost))) {
		return lost
	}
	return err
}
