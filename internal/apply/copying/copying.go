// Package copying copies files between nodes of two hosts.
//
// One host sends what the node's tar packs. The other host checks it and makes its own node unpack
// it.
package copying

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

// Give sends a file or directory of a node over a connection.
func Give(ctx context.Context, in host.Runner, e *apply.CopyErrand, along net.Conn) error {
	to := transfer.Whole(transfer.Unhurried(along))
	cut := &cutOff{Writer: to}
	switch err := (nodecopy.Place{In: in, Path: e.Path}).Pack(ctx, cut); {
	case cut.err != nil: // the error of the node's tar says less than this one
		return transfer.Cut(cut.err)
	case err != nil:
		return err
	}
	return transfer.Cut(to.Close())
}

// cutOff is a writer that remembers its first error.
type cutOff struct {
	io.Writer
	err error
}

func (c *cutOff) Write(b []byte) (int, error) {
	n, err := c.Writer.Write(b)
	if err != nil && c.err == nil {
		c.err = err
	}
	return n, err
}

// Take makes a node store what another node sends.
func Take(ctx context.Context, in host.Runner, e *apply.CopyErrand, with apply.Meeting) error {
	t := &tally{tell: with.Moved, told: time.Now()}
	defer t.end()
	from, to := nodecopy.Place{Path: e.Path, Moved: t.add}, nodecopy.Place{In: in, Path: e.Into}
	return apply.From(ctx, with, e.Host, func(c net.Conn) error { return to.Lay(ctx, transfer.Parts(c), from, e.Several) })
}

// telling is the time between two progress reports.
const telling = 500 * time.Millisecond

// A tally reports periodically how many more bytes have arrived.
type tally struct {
	mutex sync.Mutex
	tell  func(bytes int64) // or nil after the last report
	bytes int64
	told  time.Time
}

func (t *tally) add(bytes int64) {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	if t.bytes += bytes; t.tell != nil && time.Since(t.told) > telling {
		t.tell(t.bytes)
		t.bytes, t.told = 0, time.Now()
	}
}

func (t *tally) end() {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	t.tell(t.bytes)
	t.tell = nil
}
