package screen

import (
	"errors"
	"io"
	"os"
	"sync"

	"orrery/internal/host"
	"orrery/internal/problem"
)

// Checked is a stream that remembers whether all that was written to it has come there: most of
// what is printed is printed by those who have no use for an error.
type Checked struct {
	to    io.Writer
	mutex sync.Mutex
	err   error
}

// Check returns a way to a file or a pipe that remembers errors. Other streams are returned as they are.
func Check(stream io.Writer) io.Writer {
	if f, ok := stream.(*os.File); ok && !host.IsTerminal(f) {
		return &Checked{to: f}
	}
	return stream
}

// Write passes on p, unless something before it is lost already.
func (c *Checked) Write(p []byte) (n int, err error) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	if c.err == nil {
		n, c.err = c.to.Write(p)
	}
	return n, c.err
}

// Lost returns a problem if not all that was written to a stream has come there.
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

// OrLost returns the error of a verb or, if it has none of its own to tell, that its output was lost.
func OrLost(err error, stream io.Writer) error {
	lost := Lost(stream)
	var said problem.Status
	if lost != nil && (err == nil || errors.As(err, &said) || errors.Is(err, errors.Unwrap(lost))) {
		return lost
	}
	return err
}
