package remote

import (
	"context"
	"errors"
	"io"

	"orrery/internal/wire"
)

// along has a talk in which a stream goes to and fro.
func (f *far) along(ctx context.Context, about string, q question, way io.ReadWriter) error {
	t, err := f.begin(ctx, about, q)
	if err != nil {
		return err
	}
	defer t.Close()
	defer context.AfterFunc(ctx, t.Close)()
	go func() { // it ends with the stream, or with the talk
		piece := make([]byte, mostOfALog)
		for {
			n, err := way.Read(piece)
			if n > 0 && t.Say(part{Bytes: piece[:n]}) != nil {
				return
			}
			if err != nil {
				if errors.Is(err, io.EOF) {
					_ = t.Say(part{End: true})
				} else {
					t.Close()
				}
				return
			}
		}
	}()
	err = f.result(ctx, t, func(_ *wire.Talk, w *word) error {
		if len(w.Bytes) == 0 {
			return nil
		}
		_, err := way.Write(w.Bytes)
		return err
	}, nil)
	if err != nil && ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}

// wayOf gives the stream that goes along with a talk.
func wayOf(with *wire.Caller) io.ReadWriter {
	return struct {
		io.Reader
		io.Writer
	}{&parts{with: with}, sliced{with}}
}

// sliced sends what is written, in pieces that one message may have.
type sliced struct{ with *wire.Caller }

func (s sliced) Write(b []byte) (n int, err error) {
	for n < len(b) && err == nil {
		next := b[n:min(n+mostOfALog, len(b))]
		if err = s.with.Say(word{Bytes: next}); err == nil {
			n += len(next)
		}
	}
	return n, err
}
