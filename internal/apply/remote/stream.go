package remote

import (
	"cmp"
	"context"
	"errors"
	"io"

	"orrery/internal/transport/rpc"
)

// along makes a call during which a stream goes in both directions.
func (m *method[Q, A]) along(ctx context.Context, f *far, ask Q, way io.ReadWriter) error {
	t, err := m.begin(ctx, f.Link, f.at, ask)
	if err != nil {
		return err
	}
	defer t.Close()
	go func() { // ends with the stream or with the talk
		piece := make([]byte, maxPieceBytes)
		for {
			n, err := way.Read(piece)
			if n > 0 && t.Say(part{Bytes: piece[:n]}) != nil {
				return
			}
			if err != nil {
				if errors.Is(err, io.EOF) {
					_ = t.Say(part{End: true})
				} else {
					t.quit()
				}
				return
			}
		}
	}()
	var failed error // error of the stream, after which only the end of the call is awaited
	err = t.result(ctx, func(_ *rpc.Talk, w *word) error {
		if len(w.Bytes) == 0 || failed != nil {
			return nil
		}
		if _, failed = way.Write(w.Bytes); failed != nil {
			t.quit()
		}
		return nil
	}, nil)
	return cmp.Or(failed, err)
}

// stream returns the stream that accompanies a call.
func (c *received) stream() io.ReadWriter {
	return struct {
		io.Reader
		io.Writer
	}{c.parts(), sliced{c.Caller}}
}

// sliced is a writer that sends data in pieces that fit into one message.
type sliced struct{ with *rpc.Caller }

func (s sliced) Write(b []byte) (n int, err error) {
	for n < len(b) && err == nil {
		next := b[n:min(n+maxPieceBytes, len(b))]
		if err = s.with.Say(word{Bytes: next}); err == nil {
			n += len(next)
		}
	}
	return n, err
}
