package frame

import (
	"encoding/binary"
	"fmt"
	"io"
	"sync"
)

// maxPartBytes is the maximum number of a stream's bytes in one frame.
const maxPartBytes = 32 << 10

// A Writer writes bytes as frames of one kind. It writes each frame in a single call, so that
// others may write to the same stream.
type Writer struct {
	To    io.Writer
	Kind  byte
	mutex sync.Mutex
	part  []byte
}

func (w *Writer) Write(p []byte) (int, error) {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	for done := 0; done < len(p); {
		n := min(len(p)-done, maxPartBytes)
		w.part = Append(w.part[:0], w.Kind, p[done:done+n])
		if _, err := w.To.Write(w.part); err != nil {
			return done, err
		}
		done += n
	}
	return len(p), nil
}

// A Reader reads what a Writer has written, until a frame of the kind End. A read may stop in the
// middle of a frame, as at a deadline, and the next one continues there.
type Reader struct {
	From io.Reader
	Kind byte
	End  byte

	head  [headBytes]byte
	read  int    // bytes of the head that have been read
	left  uint32 // bytes of the content still to be read
	ended bool
}

func (r *Reader) Read(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	for r.left == 0 && !r.ended {
		if err := r.next(); err != nil {
			return 0, err
		}
	}
	if r.ended {
		return 0, io.EOF
	}
	n, err := r.From.Read(p[:min(int64(len(p)), int64(r.left))])
	r.left -= uint32(n) //nolint:gosec // it is at most left
	return n, err
}

// next reads the head of a frame.
func (r *Reader) next() error {
	for r.read < headBytes {
		n, err := r.From.Read(r.head[r.read:])
		if r.read += n; err != nil && r.read < headBytes {
			return err
		}
	}
	r.read = 0
	size := binary.BigEndian.Uint32(r.head[1:])
	switch kind := r.head[0]; {
	case kind == r.Kind && size <= 2*maxPartBytes:
		r.left = size
	case kind == r.End && size == 0:
		r.ended = true
	default:
		return fmt.Errorf("%w: a frame %q of %d bytes", ErrProtocol, kind, size)
	}
	return nil
}

// Ended reports whether the end was read. Without it, io.EOF means that the stream was cut.
func (r *Reader) Ended() bool { return r.ended }
