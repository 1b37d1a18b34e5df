package ferry

import (
	"context"
	"errors"
	"io"

	"orrery/internal/backup"
)

// Across lets whoever has the vault (here) and a host, or the helper of one (there), each do its part at an end of a stream, which ends with ctx. It gives why that has failed.
func Across(ctx context.Context, here, there func(way io.ReadWriter) error) error {
	near, far := pair(ctx)
	done := make(chan error, 1)
	go func() {
		err := there(far)
		far.close(err)
		done <- err
	}()
	err := here(near)
	near.close(err)
	return why(err, <-done)
}

// why gives why a transfer has failed, by what both ends say: an end that comes too early is what the other one has to explain.
func why(here, there error) error {
	if there != nil && (here == nil || errors.Is(here, there) || errors.Is(here, io.ErrUnexpectedEOF) || errors.Is(here, io.ErrClosedPipe)) {
		return there
	}
	return here
}

// An end is one of the two ends of a stream.
type end struct {
	from *io.PipeReader
	to   *io.PipeWriter
	into *backup.Adder // where this process puts what a host gives; both ends have it
}

// straight lets a host that is this process put pieces into a vault itself, which saves packing and unpacking them. A host that is
// another process gets nothing but the bytes of its end.
func straight(near io.ReadWriter, into backup.Adder) {
	if e, ok := near.(*end); ok {
		*e.into = into
	}
}

// straightInto returns where the host puts pieces, or nil if it has to send them.
func straightInto(far io.ReadWriter) backup.Adder {
	if e, ok := far.(*end); ok {
		return *e.into
	}
	return nil
}

func pair(ctx context.Context) (near, far *end) {
	a, b := io.Pipe()
	c, d := io.Pipe()
	into := new(backup.Adder)
	near, far = &end{a, d, into}, &end{c, b, into}
	context.AfterFunc(ctx, func() {
		near.close(context.Cause(ctx))
		far.close(context.Cause(ctx))
	})
	return near, far
}

// Read reads what the other end has written.
func (e *end) Read(b []byte) (int, error) { return e.from.Read(b) }

// Write is over when the other end has read.
func (e *end) Write(b []byte) (int, error) { return e.to.Write(b) }

// close ends the stream: the other end reads no more than was written, and why, if it ends too early.
func (e *end) close(why error) {
	e.to.CloseWithError(why)   //nolint:errcheck // it gives none
	e.from.CloseWithError(why) //nolint:errcheck // it gives none
}
