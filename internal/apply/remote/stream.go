package remote

import (
	"cmp"
	"context"
	"errors"
	"io"

	"orrery/internal/transport/rpc"
)

// callStream makes a call during which a stream goes in both directions.
func (m *method[Q, A]) callStream(ctx context.Context, f *remoteHost, ask Q, way io.ReadWriter) error {
	t, err := m.begin(ctx, f.Link, f.at, ask)
	if err != nil {
		return err
	}
	defer t.Close()
	go func() { // ends with the stream or with the talk
		piece := make([]byte, maxPieceBytes)
		for {
			n, err := way.Read(piece)
			if n > 0 && t.Send(pieceMessage{Bytes: piece[:n]}) != nil {
				return
			}
			if err != nil {
				if errors.Is(err, io.EOF) {
					_ = t.Send(pieceMessage{End: true})
				} else {
					t.abandon()
				}
				return
			}
		}
	}()
	var failed error // error of the stream, after which only the end of the call is awaited
	err = t.result(ctx, func(_ *rpc.Stream, w *response) error {
		if len(w.Bytes) == 0 || failed != nil {
			return nil
		}
		if _, failed = way.Write(w.Bytes); failed != nil {
			t.abandon()
		}
		return nil
	}, nil)
	return cmp.Or(failed, err)
}

// stream returns the stream that accompanies a call.
func (c *serverCall) stream() io.ReadWriter {
	return struct {
		io.Reader
		io.Writer
	}{c.parts(), slicingWriter{c.ServerStream}}
}

// slicingWriter is a writer that sends data in pieces that fit into one message.
type slicingWriter struct{ with *rpc.ServerStream }

func (s slicingWriter) Write(b []byte) (n int, err error) {
	for n < len(b) && err == nil {
		next := b[n:min(n+maxPieceBytes, len(b))]
		if err = s.with.Send(response{Bytes: next}); err == nil {
			n += len(next)
		}
	}
	return n, err
}
