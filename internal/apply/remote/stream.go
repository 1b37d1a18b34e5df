package remote

import (
	"context"
	"errors"
	"io"

	"orrery/internal/plan"
	"orrery/internal/wire"
)

// Send lets the host send what a node has written.
func (f *far) Send(ctx context.Context, s *plan.Step, way io.ReadWriter, say func(string)) (sum string, err error) {
	err = f.along(ctx, toSend, s, way, say, &sum)
	return sum, err
}

// Receive lets the host take that in.
func (f *far) Receive(ctx context.Context, s *plan.Step, way io.ReadWriter) error {
	return f.along(ctx, toTake, s, way, func(string) {}, nil)
}

// along has a talk in which a stream goes to and fro.
func (f *far) along(ctx context.Context, about string, s *plan.Step, way io.ReadWriter, say func(string), into any) error {
	text, err := plan.Encode(s)
	if err != nil {
		return err
	}
	q := f.q()
	q.Step = text
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
	err = f.result(t, func(_ *wire.Talk, w *word) error {
		if w.Detail != "" {
			say(w.Detail)
		}
		if len(w.Bytes) == 0 {
			return nil
		}
		_, err := way.Write(w.Bytes)
		return err
	}, into)
	if err != nil && ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}

// carry sends or takes in, for somebody who has the other end of the stream.
func (on *lent) carry(ctx context.Context, about string, q *question, with *wire.Caller) (any, error) {
	s, err := plan.Decode(q.Step)
	if err != nil {
		return nil, err
	}
	way := struct {
		io.Reader
		io.Writer
	}{&parts{with: with}, sliced{with}}
	if about == toTake {
		return nil, on.Receive(ctx, s, way)
	}
	return on.Send(ctx, s, way, func(text string) { _ = with.Say(word{Detail: text}) })
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
