package local

import (
	"context"
	"io"
	"net"
	"sync"
	"time"

	"orrery/internal/apply"
	"orrery/internal/host"
	"orrery/internal/host/nodecopy"
	"orrery/internal/transport/transfer"
)

// sendCopy sends a file or directory of a node, packed by the node's tar, over a connection.
func sendCopy(ctx context.Context, in host.Runner, e *apply.CopyTransfer, along net.Conn) error {
	to := transfer.NewFramedWriter(transfer.WithoutDeadline(along))
	cut := &firstErrorWriter{Writer: to}
	switch err := (nodecopy.Endpoint{In: in, Path: e.Path}).Pack(ctx, cut); {
	case cut.err != nil: // the error of the node's tar says less than this one
		return transfer.AsConnectionLost(cut.err)
	case err != nil:
		return err
	}
	return transfer.AsConnectionLost(to.Close())
}

// firstErrorWriter is a writer that remembers its first error.
type firstErrorWriter struct {
	io.Writer
	err error
}

func (c *firstErrorWriter) Write(b []byte) (int, error) {
	n, err := c.Writer.Write(b)
	if err != nil && c.err == nil {
		c.err = err
	}
	return n, err
}

// receiveCopy checks what a node of another host sends, and makes its own node unpack it.
func receiveCopy(ctx context.Context, in host.Runner, e *apply.CopyTransfer, with apply.Coordinator) error {
	t := &moveCounter{tell: with.Moved, told: time.Now()}
	defer t.end()
	from, to := nodecopy.Endpoint{Path: e.Path, Moved: t.add}, nodecopy.Endpoint{In: in, Path: e.Into}
	return apply.ReceiveFrom(ctx, with, e.Host, func(c net.Conn) error {
		return to.Extract(ctx, transfer.NewFramedReader(c), from, e.Several)
	})
}

// reportInterval is the time between two progress reports.
const reportInterval = 500 * time.Millisecond

// A moveCounter reports periodically how many more bytes have arrived.
type moveCounter struct {
	mutex sync.Mutex
	tell  func(bytes int64) // or nil after the last report
	bytes int64
	told  time.Time
}

func (t *moveCounter) add(bytes int64) {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	if t.bytes += bytes; t.tell != nil && time.Since(t.told) > reportInterval {
		t.tell(t.bytes)
		t.bytes, t.told = 0, time.Now()
	}
}

func (t *moveCounter) end() {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	t.tell(t.bytes)
	t.tell = nil
}
