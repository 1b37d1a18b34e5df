package transfer

import (
	"errors"
	"io"

	"orrery/internal/transport/frame"
)

// Kinds of frames of a framed stream.
const (
	data byte = 'd'
	end  byte = 'e'
)

// NewFramedWriter returns a writer of a stream with an explicit end, which Close sends. Without it, the
// reader gets ErrConnectionLost.
func NewFramedWriter(to io.Writer) io.WriteCloser {
	return &framedWriter{to, frame.Writer{To: to, Kind: data}}
}

type framedWriter struct {
	to    io.Writer
	parts frame.Writer
}

func (w *framedWriter) Write(b []byte) (int, error) {
	n, err := w.parts.Write(b)
	return n, markLost(err)
}

func (w *framedWriter) Close() error { return markLost(frame.Write(w.to, end, nil)) }

func markLost(err error) error {
	if err != nil {
		err = errors.Join(ErrConnectionLost, err)
	}
	return err
}

// NewFramedReader returns a reader of a stream that NewFramedWriter has written.
func NewFramedReader(from io.Reader) io.Reader {
	return &framedReader{frame.Reader{From: from, Kind: data, End: end}}
}

type framedReader struct{ from frame.Reader }

func (p *framedReader) Read(b []byte) (int, error) {
	n, err := p.from.Read(b)
	if err != nil && !p.from.Ended() && !errors.Is(err, frame.ErrProtocol) {
		err = ErrConnectionLost
	}
	return n, err
}
