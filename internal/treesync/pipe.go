package treesync

import (
	"context"
	"errors"
	"io"
)

// Pipe runs the two sides of a transfer, one here and one on a host, each at its end of a stream
// that ends with ctx. It returns why the transfer has failed.
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
	return why(err, <-done)
}

// why returns the cause by what both sides say: a stream that ended too early is for the other side to explain.
func why(here, peer error) error {
	if peer != nil && (here == nil || errors.Is(here, peer) || errors.Is(here, io.ErrUnexpectedEOF) ||
		errors.Is(here, io.ErrClosedPipe)) {
		return peer
	}
	return here
}

// A pipeEnd is one of the two ends of a stream.
type pipeEnd struct {
	from   *io.PipeReader
	to     *io.PipeWriter
	shared *any
}

// Shared returns a variable that both ends of a Pipe have, or nil if the end belongs to another
// stream, whose other end may be of another process.
func Shared(end io.ReadWriter) *any {
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

// Write returns when the other end has read.
func (e *pipeEnd) Write(b []byte) (int, error) { return e.to.Write(b) }

// close ends the stream. The other end still reads what was written, and then why it has ended.
func (e *pipeEnd) close(why error) {
	e.to.CloseWithError(why)   //nolint:errcheck // it returns none
	e.from.CloseWithError(why) //nolint:errcheck // it returns none
}
