package screen

import (
	"bytes"
	"context"
	"io"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// A pair is a pipe with a backlog, and whether the process holds a lock.
type pair struct {
	*backlog
	reader *os.File
	locked atomic.Bool
	stop   context.CancelFunc
}

func newPair(t *testing.T) *pair {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	p := &pair{reader: r}
	ctx, stop := context.WithCancel(t.Context())
	p.stop = stop
	p.backlog = newBacklog(ctx, w, p.locked.Load)
	t.Cleanup(func() {
		stop()
		r.Close()
	})
	return p
}

// write writes, and reports whether that ended within a time.
func (p *pair) write(text []byte, within time.Duration) bool {
	done := make(chan struct{})
	go func() {
		_, _ = p.Write(text)
		close(done)
	}()
	select {
	case <-done:
		return true
	case <-time.After(within):
		return false
	}
}

var outputLine = append(bytes.Repeat([]byte{'x'}, 4095), '\n')

// TestReaderIsAwaited: without a lock, a writer proceeds at the pace of its reader, and nothing is
// lost. Up to a limit, that holds even if the reader was slow while a lock was held.
func TestReaderIsAwaited(t *testing.T) {
	p := newPair(t)
	if p.write(bytes.Repeat(outputLine, 100), 50*time.Millisecond) {
		t.Error("it does not wait for the reader")
	}
	p.locked.Store(true) // a lock is taken while the write waits
	for range 50 {
		if !p.write(outputLine, time.Minute) {
			t.Fatal("it waits for the reader while a lock is held")
		}
	}
	go func() {
		p.locked.Store(false)
		p.Flush()
		p.stream.Close()
	}()
	text, err := io.ReadAll(p.reader)
	if err != nil || len(text) != 150*len(outputLine) || strings.Contains(string(text), "dropped") {
		t.Errorf("the reader got %d bytes of %d: %v", len(text), 150*len(outputLine), err)
	}
}

// TestNobodyReads: while a lock is held, all writes together wait for a short time, and stored
// output is limited. A later reader is told how much is missing.
//
// Promise (Members): While a member's call holds a lock, its writes together wait one second at
// most, and 1 MiB is kept. With cli/screen.TestReaderIsAwaited, test.TestHoldUp.
func TestNobodyReads(t *testing.T) {
	p := newPair(t)
	p.locked.Store(true)
	began := time.Now()
	for range 1000 {
		if !p.write(outputLine, time.Minute) {
			t.Fatal("it waits for its reader")
		}
	}
	if took := time.Since(began); took > 20*time.Second { // one second, but the machine may be busy
		t.Errorf("it waited %v", took)
	}
	p.mutex.Lock()
	if len(p.pending) > maxBacklogBytes {
		t.Errorf("it keeps %d bytes", len(p.pending))
	}
	p.mutex.Unlock()
	p.locked.Store(false)
	go func() {
		_, _ = p.Write([]byte("the end\n"))
		p.Flush()
		p.stream.Close()
	}()
	text, _ := io.ReadAll(p.reader)
	kept := bytes.Count(text, outputLine)
	if kept < 200 || kept > 300 || !strings.HasSuffix(string(text),
		"bytes of output were dropped here: they were not read while a lock was held.\nthe end\n") {
		t.Errorf("the reader got %d lines, and %q", kept, text[max(0, len(text)-120):])
	}
}

// TestInterrupted: after an interrupt, no write waits for the reader.
func TestInterrupted(t *testing.T) {
	p := newPair(t)
	time.AfterFunc(50*time.Millisecond, p.stop)
	if !p.write(bytes.Repeat(outputLine, 100), time.Minute) {
		t.Error("a write goes on")
	}
	began := time.Now()
	if p.Flush(); time.Since(began) > 30*time.Second {
		t.Error("the end waits for the reader")
	}
}

// TestBrokenStream: a stream that accepts nothing more is an error, and writes do not wait.
func TestBrokenStream(t *testing.T) {
	p := newPair(t)
	p.reader.Close()
	for attempt := 0; ; attempt++ {
		if _, err := p.Write(outputLine); err != nil {
			break
		}
		if p.Flush(); attempt > 1 {
			t.Fatal("writes to nobody succeed")
		}
	}
}
