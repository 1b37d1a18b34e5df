package transfer

import (
	"errors"
	"io"

	"orrery/internal/transport/frame"
)

// Kinds of frames of a Whole stream.
const (
	data byte = 'd'
	end  byte = 'e'
)

// Whole returns a writer of a stream with an explicit end, which Close sends. Without it, the
// reader gets ErrCut.
func Whole(to io.Writer) io.WriteCloser { return &whole{to, frame.Writer{To: to, Kind: data}} }

type whole struct {
	to    io.Writer
	parts frame.Writer
}

func (w *whole) Write(b []byte) (int, error) {
	n, err := w.parts.Write(b)
	return n, cut(err)
}

func (w *whole) Close() error { return cut(frame.Write(w.to, end, nil)) }

func cut(err error) error {
	if err != nil {
		err = errors.Join(ErrCut, err)
	}
	return err
}

// Parts returns a reader of a stream that Whole has written.
func Parts(from io.Reader) io.Reader { return &parts{frame.Reader{From: from, Kind: data, End: end}} }

type parts struct{ from frame.Reader }

func (p *parts) Read(b []byte) (int, error) {
	n, err := p.from.Read(b)
	if err != nil && !p.from.Ended() && !errors.Is(err, frame.ErrForm) {
		err = ErrCut
	}
	return n, err
}
