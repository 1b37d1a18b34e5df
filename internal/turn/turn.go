// Package turn lets several sessions use one connection, one after another: each saves a login.
//
// Who has made the connection takes a turn with Begin and ends it with End; then he may take another one, or give the connection to somebody else who does. At the far end, Serve gives
// each turn to be done. Neither end reads more of the connection than its turn, so it is clean in between: nothing is under way, and nothing that was asked for still goes on.
//
// Between two turns, whoever has the connection sends a Pulse now and then, which is answered with one. Where none comes for long, the far end ends the connection.
package turn

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"
)

// What goes along the connection: single bytes, and pieces of what a turn has to say, of which the size comes first.
const (
	Pulse = 'p' // a sign of life, and the answer to it
	begin = 'b'
	end   = 'e' // by either end
	data  = 'd'

	mostData = 32 << 10
)

var (
	errFrame = errors.New("what comes belongs to no turn")
	errNoise = errors.New("more comes than belongs to the turn")
)

// A Turn is one session on a connection. It ends when both ends have said so.
type Turn struct {
	conn io.ReadWriteCloser
	from *bufio.Reader
	left int           // bytes of the piece that is being read
	over chan struct{} // closed when the far end has said that it is over
	more bool          // it has said more after that; known when it is over

	mutex sync.Mutex // of writing
	ended bool       // this end has said so, or will say nothing more
	piece []byte
}

func of(conn io.ReadWriteCloser, from *bufio.Reader) *Turn {
	return &Turn{conn: conn, from: from, over: make(chan struct{})}
}

func reader(conn io.Reader) *bufio.Reader { return bufio.NewReaderSize(conn, 2*mostData) }

// Begin takes a turn. To close it before it has ended closes the connection.
func Begin(conn io.ReadWriteCloser) (*Turn, error) {
	if _, err := conn.Write([]byte{begin}); err != nil {
		return nil, err
	}
	return of(conn, reader(conn)), nil
}

// Read reads what the far end says in this turn.
func (t *Turn) Read(p []byte) (int, error) {
	for t.left == 0 {
		if t.isOver() {
			return 0, io.EOF
		}
		if err := t.next(); err != nil {
			return 0, err
		}
	}
	n, err := t.from.Read(p[:min(len(p), t.left)])
	t.left -= n
	return n, err
}

// next reads up to the next piece, or to the end.
func (t *Turn) next() error {
	kind, err := t.from.ReadByte()
	if err != nil {
		return err
	}
	switch kind {
	case Pulse: // from before
	case end:
		t.more = t.from.Buffered() > 0
		close(t.over)
	case data:
		var size [2]byte
		if _, err := io.ReadFull(t.from, size[:]); err != nil {
			return err
		}
		t.left = int(binary.BigEndian.Uint16(size[:]))
		if t.left == 0 || t.left > mostData {
			return errFrame
		}
	default:
		return fmt.Errorf("%w: %q", errFrame, kind)
	}
	return nil
}

func (t *Turn) isOver() bool {
	select {
	case <-t.over:
		return true
	default:
		return false
	}
}

// Write says something. What is said after this end has ended is lost.
func (t *Turn) Write(p []byte) (int, error) {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	for done := 0; done < len(p) && !t.ended; {
		n := min(len(p)-done, mostData)
		t.piece = binary.BigEndian.AppendUint16(append(t.piece[:0], data), uint16(n))
		t.piece = append(t.piece, p[done:done+n]...)
		if _, err := t.conn.Write(t.piece); err != nil {
			return done, err
		}
		done += n
	}
	return len(p), nil
}

// End ends the turn, and waits until the far end has brought all to an end that was under way in it. Somebody must be reading. If there is no error, the connection is whole, and free for
// another turn: closing this one does nothing then.
func (t *Turn) End(ctx context.Context) error {
	said := make(chan error, 1)
	go func() { said <- t.say() }()
	select {
	case err := <-said:
		if err != nil {
			return err
		}
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	select {
	case <-t.over:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	if t.more {
		return errNoise
	}
	return nil
}

// say says that it is over.
func (t *Turn) say() error {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	t.ended = true
	_, err := t.conn.Write([]byte{end})
	return err
}

// mute lets this end say nothing more.
func (t *Turn) mute() {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	t.ended = true
}

// Close closes the connection, unless the far end has ended the turn.
func (t *Turn) Close() error {
	if t.isOver() && !t.more {
		return nil
	}
	return t.conn.Close()
}

// Patience is how long Serve waits between two turns for a sign of life.
var Patience = 20 * time.Second // but in tests

// Serve has turns done, one after the other, until the connection ends. Do gets one and reads it to its end; nothing that it has begun goes on when it returns.
func Serve(conn io.ReadWriteCloser, do func(io.ReadWriteCloser) error) error {
	from := reader(conn)
	for {
		if err := await(conn, from); err != nil {
			if errors.Is(err, io.EOF) {
				return nil
			}
			return err
		}
		t := of(conn, from)
		err := do(t)
		if err != nil || !t.isOver() {
			_ = conn.Close()
			return err
		}
		t.mute()
		if _, err := conn.Write([]byte{end}); err != nil {
			return err
		}
	}
}

// await waits for a turn to begin.
func await(conn io.ReadWriteCloser, from *bufio.Reader) error {
	late := time.AfterFunc(Patience, func() { _ = conn.Close() })
	defer late.Stop()
	for {
		kind, err := from.ReadByte()
		if err != nil {
			return err
		}
		switch kind {
		case begin:
			return nil
		case Pulse:
			late.Reset(Patience)
			if _, err := conn.Write([]byte{Pulse}); err != nil {
				return err
			}
		default:
			return fmt.Errorf("%w: %q", errFrame, kind)
		}
	}
}
