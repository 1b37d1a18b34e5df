package lane

import (
	"encoding/binary"
	"errors"
	"io"
)

// mostPart bounds what comes at once of a Whole stream.
const mostPart = 1 << 20

// Whole gives a writer of a stream whose end is told: Close tells that all has been written. Without, whoever reads it meets ErrCut.
func Whole(to io.Writer) io.WriteCloser { return &whole{to} }

type whole struct{ to io.Writer }

func (w *whole) Write(b []byte) (n int, err error) {
	for n < len(b) && err == nil {
		next := b[n:min(len(b), n+mostPart)]
		if err = w.part(next); err == nil {
			n += len(next)
		}
	}
	return n, err
}

func (w *whole) part(b []byte) error {
	if _, err := w.to.Write(binary.BigEndian.AppendUint32(nil, uint32(len(b)))); err != nil { //nolint:gosec // it is small
		return errors.Join(ErrCut, err)
	}
	if _, err := w.to.Write(b); err != nil {
		return errors.Join(ErrCut, err)
	}
	return nil
}

func (w *whole) Close() error { return w.part(nil) }

// Parts reads what Whole has written.
func Parts(from io.Reader) io.Reader { return &parts{from: from} }

type parts struct {
	from io.Reader
	left int
	end  bool
}

func (p *parts) Read(b []byte) (int, error) {
	if p.end {
		return 0, io.EOF
	}
	if p.left == 0 {
		var head [4]byte
		if _, err := io.ReadFull(p.from, head[:]); err != nil {
			return 0, ErrCut
		}
		n := binary.BigEndian.Uint32(head[:])
		if n > mostPart {
			return 0, errors.New("the other host sends what makes no sense")
		}
		if p.left = int(n); n == 0 {
			p.end = true
			return 0, io.EOF
		}
	}
	n, err := p.from.Read(b[:min(len(b), p.left)])
	if p.left -= n; n > 0 {
		return n, nil
	}
	if err != nil {
		err = ErrCut
	}
	return 0, err
}
