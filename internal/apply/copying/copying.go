// Package copying copies files between nodes of two hosts: one host sends what the node's tar
// packs, and the other checks it and has its own node unpack it.
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

// Give sends a file or directory of a node along a lane.
func Give(ctx context.Context, in host.Runner, e *apply.CopyErrand, along net.Conn) error {
	to := transfer.Whole(transfer.Unhurried(along))
	cut := &cutOff{Writer: to}
	switch err := (nodecopy.Place{In: in, Path: e.Path}).Pack(ctx, cut); {
	case cut.err != nil: // what the node's tar says of that says less
		return transfer.Cut(cut.err)
	case err != nil:
		return err
	}
	return transfer.Cut(to.Close())
}

// cutOff remembers that it could not be written to.
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

// Take has a node lay down what comes from another one.
func Take(ctx context.Context, in host.Runner, e *apply.CopyErrand, with apply.Meeting) error {
	t := &tally{tell: with.Moved, told: time.Now()}
	defer t.end()
	from, to := nodecopy.Place{Path: e.Path, Moved: t.add}, nodecopy.Place{In: in, Path: e.Into}
	return apply.From(ctx, with, e.Host, func(c net.Conn) error { return to.Lay(ctx, transfer.Parts(c), from, e.Several) })
}

// telling is how often a host tells how much has come.
const telling = 500 * time.Millisecond

// A tally tells now and then how many bytes more have come.
type tally struct {
	mutex sync.Mutex
	tell  func(bytes int64) // nil: nobody hears it any more
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
