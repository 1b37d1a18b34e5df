package screen

import (
	"context"
	"fmt"
	"os"
	"sync"
	"time"
)

// Limits of a backlog.
const (
	maxAhead        = 64 << 10    // bytes that a write may be ahead of the reader
	maxBacklogBytes = 1 << 20     // stored for the reader while a lock is held
	maxWait         = time.Second // total time that writes wait for the reader while a lock is held
	flushWait       = time.Second // time that Flush waits after an interrupt
	pollPause       = 5 * time.Millisecond
	maxPieceLen     = 64 << 10 // maximum size of a write to the kernel
)

// A backlog writes to a stream whose reader may stop reading. The reader may be a member's terminal
// or pipe. As long as no other process waits for this one, writes proceed at the pace of the reader.
// While this process holds a lock, writes wait for a short time only. What the reader has not read
// by then is stored up to a limit, and dropped beyond that. Several goroutines may use a backlog at
// once.
type backlog struct {
	ctx     context.Context
	stream  *os.File
	locked  func() bool
	mutex   sync.Mutex
	pending []byte
	in, out int64 // bytes accepted, and written to the stream
	waited  time.Duration
	dropped int64
	err     error
	wake    chan struct{}
	moved   chan struct{} // closed whenever the stream has accepted bytes
}

// newBacklog returns a writer to a stream. Locked reports whether this process holds a lock for which
// others may wait. When ctx ends, no write waits for the reader any more.
func newBacklog(ctx context.Context, stream *os.File, locked func() bool) *backlog {
	w := &backlog{ctx: ctx, stream: stream, locked: locked, wake: make(chan struct{}, 1), moved: make(chan struct{})}
	go w.writeLoop()
	return w
}

// Fd returns the descriptor of the stream, so that it is recognized as a terminal.
func (w *backlog) Fd() uintptr { return w.stream.Fd() }

// Write accepts or drops p as a whole. It returns the stream's error, which may concern earlier
// writes.
func (w *backlog) Write(p []byte) (int, error) {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	for len(w.pending) > 0 && len(w.pending)+len(p) > maxBacklogBytes && w.err == nil {
		if !w.wait() {
			w.dropped += int64(len(p))
			return len(p), nil
		}
	}
	if w.err != nil {
		return 0, w.err
	}
	w.reportDropped()
	w.enqueue(p)
	for end := w.in; w.out < end-maxAhead && w.err == nil; {
		if !w.wait() {
			return len(p), nil
		}
	}
	if w.err != nil {
		return 0, w.err
	}
	return len(p), nil
}

func (w *backlog) reportDropped() {
	if w.dropped > 0 {
		w.enqueue(fmt.Appendf(nil,
			"orrery: %d bytes of output were dropped here: they were not read while a lock was held.\n",
			w.dropped))
		w.dropped = 0
	}
}

func (w *backlog) enqueue(p []byte) {
	w.pending = append(w.pending, p...)
	w.in += int64(len(p))
	select {
	case w.wake <- struct{}{}:
	default: // the goroutine is awake already
	}
}

// wait waits until the stream has accepted bytes, and reports whether the caller may wait again. It
// releases the mutex while it waits.
func (w *backlog) wait() bool {
	if w.ctx.Err() != nil {
		return false
	}
	locked := w.locked()
	if locked && w.waited >= maxWait {
		return false
	}
	moved, began := w.moved, time.Now()
	w.mutex.Unlock()
	select {
	case <-moved:
	case <-w.ctx.Done():
	case <-time.After(pollPause): // by then, this process may hold a lock
	}
	w.mutex.Lock()
	if locked {
		w.waited += time.Since(began)
	}
	return true
}

// writeLoop writes pending bytes to the stream until the process ends.
func (w *backlog) writeLoop() {
	for range w.wake {
		for w.writePiece() {
		}
	}
}

func (w *backlog) writePiece() bool {
	w.mutex.Lock()
	piece := w.pending[:min(len(w.pending), maxPieceLen)]
	failed := w.err != nil
	w.mutex.Unlock()
	if len(piece) == 0 || failed {
		return false
	}
	n, err := w.stream.Write(piece)
	w.mutex.Lock()
	defer w.mutex.Unlock()
	w.pending = append(w.pending[:0:0], w.pending[n:]...)
	w.out += int64(n)
	w.err = err
	close(w.moved)
	w.moved = make(chan struct{})
	return true
}

// Flush waits until everything was written to the stream. After an interrupt, it waits only for a
// short time.
func (w *backlog) Flush() {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	w.reportDropped()
	for began := (time.Time{}); w.out < w.in && w.err == nil; {
		if w.ctx.Err() != nil {
			if began.IsZero() {
				began = time.Now()
			}
			if time.Since(began) > flushWait {
				return
			}
		}
		moved := w.moved
		w.mutex.Unlock()
		select {
		case <-moved:
		case <-time.After(pollPause):
		}
		w.mutex.Lock()
	}
}
