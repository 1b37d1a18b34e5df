package wire

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"

	"orrery/internal/jsonlimit"
)

// A kind of frame.
type kind byte

const (
	asks   kind = 'q' // a question; the first frame of each stream
	says   kind = 'a' // an answer
	out    kind = 'o' // bytes: of the output of a command, of files, of a connection
	errs   kind = 'e' // bytes of the other output of a command
	sized  kind = 's' // the new size of a terminal
	ending kind = 'w' // one direction of a connection has come to its end; of a talk: the caller wants no more

	message kind = 'm' // of a talk
)

// Bounds of frames.
const (
	mostAsked   = 8 << 20  // more than Linux lets a command have of arguments and environment
	mostSaid    = 64 << 10 // by a far end, of how a call went
	mostBytes   = 32 << 10
	mostMessage = 64 << 20 // of a talk: all that is on a host
	head        = 5
)

var errFrame = errors.New("it sends what is not of the protocol")

// frame gives the bytes of a frame: its kind, its length, and what is in it.
func frame(k kind, payload []byte) []byte {
	b := make([]byte, head, head+len(payload))
	b[0] = byte(k)
	binary.BigEndian.PutUint32(b[1:], uint32(len(payload)))
	return append(b, payload...)
}

// tell writes a frame of JSON.
func tell(w io.Writer, k kind, what any) error {
	text, err := json.Marshal(what)
	if err != nil {
		return err
	}
	_, err = w.Write(frame(k, text))
	return err
}

// next reads a frame, of at most so many bytes: into the piece given, if it fits.
func next(r io.Reader, most int, piece []byte) (kind, []byte, error) {
	var h [head]byte
	if _, err := io.ReadFull(r, h[:]); err != nil {
		return 0, nil, err
	}
	size := binary.BigEndian.Uint32(h[1:])
	if uint64(size) > uint64(most) {
		return 0, nil, fmt.Errorf("%w: a frame of %d bytes", errFrame, size)
	}
	if n := int(size); n <= len(piece) {
		_, err := io.ReadFull(r, piece[:n])
		return kind(h[0]), piece[:n], whole(err)
	}
	payload, err := io.ReadAll(io.LimitReader(r, int64(size))) // it takes memory as it comes
	if err == nil && len(payload) < int(size) {
		err = io.ErrUnexpectedEOF
	}
	return kind(h[0]), payload, err
}

// whole says of a frame that ends in its middle that it does.
func whole(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

// understand reads a frame of JSON.
func understand(r io.Reader, want kind, most int, what any) error {
	k, text, err := next(r, most, nil)
	if err != nil {
		return err
	}
	if k != want {
		return fmt.Errorf("%w: a frame %q", errFrame, k)
	}
	if err := jsonlimit.Unmarshal(text, what); err != nil {
		return fmt.Errorf("%w: %w", errFrame, err)
	}
	return nil
}

// frames writes bytes as frames of one kind, each in one piece, so that others may write to the same stream.
type frames struct {
	to    io.Writer
	kind  kind
	mutex sync.Mutex
	piece []byte
}

func (f *frames) Write(p []byte) (int, error) {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	for done := 0; done < len(p); {
		n := min(len(p)-done, mostBytes)
		f.piece = append(f.piece[:0], byte(f.kind), 0, 0, 0, 0)
		binary.BigEndian.PutUint32(f.piece[1:], uint32(n))
		f.piece = append(f.piece, p[done:done+n]...)
		if _, err := f.to.Write(f.piece); err != nil {
			return done, err
		}
		done += n
	}
	return len(p), nil
}
