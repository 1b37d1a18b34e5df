package rpc

import (
	"bufio"
	"encoding/binary"
	"errors"
	"io"
	"sync"
	"sync/atomic"
	"time"
)

// A record carries the mark of its session at its beginning and at its end. A port of a virtual
// machine is one connection that is never closed. Clients come and go on it, and may be killed
// while they send. What is left of such a message, followed by what the next client sends, must
// never be taken for a whole message: half a file with something else behind it. So a record counts
// only if both marks are those of the session.
const (
	markBytes      = 8 // bytes of a session's mark
	maxRecordBytes = 16 << 10
	recordOverhead = markBytes + 2 + markBytes
)

// errOtherSession is the error for received bytes that do not belong to this session.
var errOtherSession = errors.New("the data belongs to another session")

// records carry the bytes of one session over a connection.
type records struct {
	conn io.ReadWriteCloser
	from *bufio.Reader
	mark [markBytes]byte

	rest []byte // unread bytes of the current record, in the buffer of from
	took int    // bytes of that buffer to discard when rest is empty

	heard atomic.Int64 // number of records received

	mutex  sync.Mutex // held while writing
	closed bool
	piece  []byte
}

// newReader returns a reader for records and greetings whose buffer holds a whole record.
func newReader(conn io.Reader) *bufio.Reader { return bufio.NewReaderSize(conn, 4*maxRecordBytes) }

func (r *records) Read(p []byte) (int, error) {
	if len(r.rest) == 0 {
		if err := r.next(); err != nil {
			return 0, err
		}
	}
	n := copy(p, r.rest)
	r.rest = r.rest[n:]
	return n, nil
}

// next waits for a record. A record of another session stays unread, because it may contain a
// greeting.
func (r *records) next() error {
	_, _ = r.from.Discard(r.took) // never fails: these bytes are buffered
	r.took = 0
	h, err := r.from.Peek(markBytes + 2)
	if err != nil {
		return err
	}
	size := int(binary.BigEndian.Uint16(h[markBytes:]))
	if [markBytes]byte(h) != r.mark || size == 0 || size > maxRecordBytes {
		return errOtherSession
	}
	all, err := r.from.Peek(size + recordOverhead)
	if err != nil {
		return err
	}
	if [markBytes]byte(all[markBytes+2+size:]) != r.mark {
		return errOtherSession
	}
	r.rest, r.took = all[markBytes+2:markBytes+2+size], len(all)
	r.heard.Add(1)
	return nil
}

func (r *records) Write(p []byte) (int, error) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	for done := 0; done < len(p); {
		if r.closed {
			return done, io.ErrClosedPipe
		}
		n := min(len(p)-done, maxRecordBytes)
		r.piece = append(r.piece[:0], r.mark[:]...)
		r.piece = binary.BigEndian.AppendUint16(r.piece, uint16(n))
		r.piece = append(append(r.piece, p[done:done+n]...), r.mark[:]...)
		if _, err := r.conn.Write(r.piece); err != nil {
			return done, err
		}
		done += n
	}
	return len(p), nil
}

// Close ends the session and all reads and writes on it. If the connection supports deadlines, it
// stays open for the next session.
func (r *records) Close() error {
	if !interruptIO(r.conn) {
		_ = r.conn.Close()
	}
	r.mutex.Lock()
	defer r.mutex.Unlock()
	r.closed = true
	return nil
}

// interruptIO makes all reads and writes on a connection fail until calm is called. It reports whether
// the connection supports that.
func interruptIO(conn io.ReadWriteCloser) bool {
	c, ok := conn.(interface{ SetDeadline(at time.Time) error })
	return ok && c.SetDeadline(time.Unix(1, 0)) == nil
}

func clearDeadline(conn io.ReadWriteCloser) {
	if c, ok := conn.(interface{ SetDeadline(at time.Time) error }); ok {
		_ = c.SetDeadline(time.Time{})
	}
}
