package treesync

import (
	"context"
	"errors"
	"io"
)

// Pipe runs the two sides of a transfer, one on the control host and one for a remote host. Each
// has one end of a stream that is closed when ctx ends. Pipe returns the error that made the
// transfer fail.
func Pipe(ctx context.Context, here, peer func(rw io.ReadWriter) error) error {
	near, far := newPipe(ctx)
	done := make(chan error, 1)
	go func() {
		err := peer(far)
		far.close(err)
		done <- err
	}()
	err := here(near)
	near.close(err)
	return rootCause(err, <-done)
}

// rootCause returns the cause of a failure from the errors of both sides. If one side only reports that
// the stream ended too early, the error of the other side is the cause.
func rootCause(here, peer error) error {
	if peer != nil && (here == nil || errors.Is(here, peer) || errors.Is(here, io.ErrUnexpectedEOF) ||
		errors.Is(here, io.ErrClosedPipe)) {
		return peer
	}
	return here
}

// A pipeEnd is one end of a stream.
type pipeEnd struct {
	from   *io.PipeReader
	to     *io.PipeWriter
	shared *any
}

// SharedState returns a variable that both ends of a Pipe share, or nil if the stream is not a Pipe and
// may lead to another process.
func SharedState(end io.ReadWriter) *any {
	if e, ok := end.(*pipeEnd); ok {
		return e.shared
	}
	return nil
}

func newPipe(ctx context.Context) (near, far *pipeEnd) {
	a, b := io.Pipe()
	c, d := io.Pipe()
	shared := new(any)
	near, far = &pipeEnd{a, d, shared}, &pipeEnd{c, b, shared}
	context.AfterFunc(ctx, func() {
		near.close(context.Cause(ctx))
		far.close(context.Cause(ctx))
	})
	return near, far
}

// Read reads what the other end has written.
func (e *pipeEnd) Read(b []byte) (int, error) { return e.from.Read(b) }

// Write blocks until the other end has read the data.
func (e *pipeEnd) Write(b []byte) (int, error) { return e.to.Write(b) }

// close ends the stream. The other end can still read what was written, and then gets why as its
// error.
func (e *pipeEnd) close(why error) {
	e.to.CloseWithError(why)   //nolint:errcheck // it returns none
	e.from.CloseWithError(why) //nolint:errcheck // it returns none
}
