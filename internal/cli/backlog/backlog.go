// Package backlog writes to a stream whose reader may stop reading, such as a member's terminal or
// pipe. As long as nobody waits for this process, it goes at the pace of its reader. But while it
// holds a lock, it waits for a moment at most: what the reader has not taken by then is kept, up to
// a limit, and dropped beyond.
package backlog

import (
	"context"
	"fmt"
	"os"
	"sync"
	"time"
)

// Limits of a Writer.
const (
	maxAhead    = 64 << 10    // bytes that a write may be ahead of the reader
	maxBytes    = 1 << 20     // that are kept for the reader while a lock is held
	maxWait     = time.Second // that all writes together wait for the reader while a lock is held
	flushWait   = time.Second // that Flush waits when the call has been interrupted
	pollPause   = 5 * time.Millisecond
	maxPieceLen = 64 << 10 // that are handed to the kernel at once
)

// A Writer is the way to a stream. It may be used by several goroutines at once.
type Writer struct {
	ctx     context.Context
	stream  *os.File
	locked  func() bool
	mutex   sync.Mutex
	pending []byte
	in, out int64 // bytes taken, and handed to the stream
	waited  time.Duration
	dropped int64
	err     error
	wake    chan struct{}
	moved   chan struct{} // closed whenever the stream has taken something
}

// New returns a writer to a stream. Locked reports whether this process holds a lock for which
// others wait. When ctx is over, nothing waits for the reader any more.
func New(ctx context.Context, stream *os.File, locked func() bool) *Writer {
	w := &Writer{ctx: ctx, stream: stream, locked: locked, wake: make(chan struct{}, 1), moved: make(chan struct{})}
	go w.carry()
	return w
}

// Fd returns the descriptor of the stream, by which it is known for a terminal.
func (w *Writer) Fd() uintptr { return w.stream.Fd() }

// Write takes p as a whole, or drops it as a whole. The error is that of the stream, which may be
// of what was written before.
func (w *Writer) Write(p []byte) (int, error) {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	for len(w.pending) > 0 && len(w.pending)+len(p) > maxBytes && w.err == nil {
		if !w.wait() {
			w.dropped += int64(len(p))
			return len(p), nil
		}
	}
	if w.err != nil {
		return 0, w.err
	}
	w.tellDropped()
	w.add(p)
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

func (w *Writer) tellDropped() {
	if w.dropped > 0 {
		w.add(fmt.Appendf(nil, "orrery: %d bytes of output were dropped here: nobody read them while a lock was held.\n",
			w.dropped))
		w.dropped = 0
	}
}

func (w *Writer) add(p []byte) {
	w.pending = append(w.pending, p...)
	w.in += int64(len(p))
	select {
	case w.wake <- struct{}{}:
	default: // it is awake
	}
}

// wait waits until the stream has taken something, and reports whether waiting goes on to be
// allowed. The mutex is free meanwhile.
func (w *Writer) wait() bool {
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
	case <-time.After(pollPause): // by then, somebody may hold a lock
	}
	w.mutex.Lock()
	if locked {
		w.waited += time.Since(began)
	}
	return true
}

// carry hands what is pending to the stream, for as long as the process lives.
func (w *Writer) carry() {
	for range w.wake {
		for w.carryPiece() {
		}
	}
}

func (w *Writer) carryPiece() bool {
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

// Flush waits until the reader has all that was written; once the call has been interrupted, for a moment.
func (w *Writer) Flush() {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	w.tellDropped()
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
